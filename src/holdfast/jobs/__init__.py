"""Compaction in the background: in this process, or on a BullMQ queue shared by many processes."""

from ..errors import JobFailed, QueueError
from .background import BackgroundCompactor
from .bullmq import BullMQQueue, BullMQWorker
from .queue import InProcessQueue, Job, Queue, QueueSettings
from .runner import JobResult, JobRunner, JobStats
from .sweeper import Sweeper, SweepingWorker

__all__ = [
    "BackgroundCompactor",
    "BullMQQueue",
    "BullMQWorker",
    "InProcessQueue",
    "Job",
    "JobFailed",
    "JobResult",
    "JobRunner",
    "JobStats",
    "Queue",
    "QueueError",
    "QueueSettings",
    "Sweeper",
    "SweepingWorker",
]
