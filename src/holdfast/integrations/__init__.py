"""Holdfast inside agent frameworks: one module each, in the framework's own terms.

    from holdfast.integrations.langchain import HoldfastMiddleware
    agent = create_agent(model, tools, middleware=[HoldfastMiddleware(window=200_000)])

Importing a module imports its framework, an extra of the same name.
"""
