"""Both vendors' compaction protocols over any upstream, and Anthropic's context edits: beside the path of a request.

Only a request that speaks one of them enters here.
"""
