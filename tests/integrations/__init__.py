"""Integrations, run in the frameworks' own agent loops against a local server that refuses what the provider would."""

import os
from importlib.util import find_spec

_VARIABLES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else LiteLLM fetches prices from the network
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "GOOGLE_API_KEY": "harbor-0123456789",
}
if find_spec("crewai"):  # in the frameworks' own environment: other tests must not see these
    for _name, _value in _VARIABLES.items():
        os.environ.setdefault(_name, _value)
