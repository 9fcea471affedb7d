"""A recorded table history → findings: commits that a policy would have refused, and what lies wrong in the table."""

from lakeproof.audit.audit import Audit, audit
from lakeproof.audit.findings import Finding

__all__ = ["Audit", "Finding", "audit"]
