"""Around a running agent: before a step, after a step, on overflow; and a small agent built on it."""

from .agent import SYSTEM, Agent
from .keeper import Keeper
from .remedies import CutOff, Recovery
from .window import Window

__all__ = ["SYSTEM", "Agent", "CutOff", "Keeper", "Recovery", "Window"]
