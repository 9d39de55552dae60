"""Known ways to break trust: folders, approvals, redaction and keys, each with the tests that must notice."""

from __future__ import annotations

from .mutation import mutation

FOLDERS = "tests/test_trust.py"
INSTRUCTIONS = "tests/agent/test_project_instructions.py"
PERMISSIONS = "tests/agent/test_permissions.py"
RULES = "tests/agent/test_command_rules.py"
PATHS = "tests/agent/test_protected_paths.py"
TERMINAL = "tests/chat/terminal/test_terminal_app.py"
TRACES = "tests/sessions/test_redaction_traces.py"
BROWSERS = "tests/gateway/test_gateway_browsers.py"
KEYS = "tests/gateway/test_gateway_keys.py"

TRUST = (
    # -- folders -----------------------------------------------------------------------------------------
    mutation(
        "another folder in the place of a trusted one is trusted",
        "trust.py",
        "is not None and found.folder == here:",
        "is not None:",
        f"{FOLDERS} -k another_folder_in_the_place",
    ),
    mutation(
        "trust in the home folder holds for all below it",
        "trust.py",
        "and not (is_inherited and self._is_wide(place))",
        "",
        f"{FOLDERS} -k home_folder",
    ),
    mutation(
        "a folder of another user inherits trust",
        "trust.py",
        "holds = owners <= {_own_id(), here.owner} and not",
        "holds = not",
        f"{FOLDERS} -k inherits_nothing",
    ),
    mutation(
        "files of other users are read",
        "trust.py",
        "folder.read_bytes(real, limit, self.owners)",
        "folder.read_bytes(real, limit)",
        f"{FOLDERS} -k file_of_another_user",
    ),
    mutation(
        "a refusal is taken for trust",
        "trust.py",
        "is not None and decision.trusted:",
        "is not None:",
        f"{FOLDERS} -k refusal",
    ),
    mutation(
        "a project chooses the model",
        "settings/keys.py",
        '"model that answers", f"{PREFIX}MODEL")',
        '"model that answers", f"{PREFIX}MODEL", True)',
        "tests/settings/test_settings_trust.py -k untrusted_key",
    ),
    mutation(
        "instructions can close their tag",
        "agent/project_instructions.py",
        'delimiter_tag("instructions", file.text)',
        '"instructions"',
        f"{INSTRUCTIONS} -k close_their_own_tag",
    ),
    mutation(
        "reading does not ask in a folder that is not trusted",
        "agent/tools/permissions.py",
        "return Verdict(self._trusted, about",
        "return Verdict(True, about",
        f"{PERMISSIONS} -k not_trusted",
    ),
    # -- approvals ---------------------------------------------------------------------------------------
    mutation(
        "a rule for a tool covers protected files",
        "agent/tools/permissions.py",
        "            if why is not None:\n",
        "            if False:\n",
        PATHS,
    ),
    mutation(
        "a mode accepts edits of protected files",
        "agent/tools/permissions.py",
        'accepted = self.mode == "accept-edits" and change is not None and bool(rules)',
        'accepted = self.mode == "accept-edits" and change is not None',
        f"{PERMISSIONS} -k mode_decides",
        PATHS,
    ),
    mutation(
        "plan mode changes files",
        "agent/tools/permissions.py",
        'if self.mode == "plan" and not scope.reads_only:',
        "if False:",
        f"{PERMISSIONS} -k mode_decides",
    ),
    mutation(
        "a version in the name of an interpreter hides it",
        "agent/tools/command_rules.py",
        "if called in RUNS_OTHERS or family in RUNS_OTHERS or",
        "if called in RUNS_OTHERS or",
        RULES,
    ),
    mutation(
        "a rule reaches files outside the folder",
        "agent/tools/command_rules.py",
        "        if not _stays_inside(value, root):",
        "        if False:",
        RULES,
    ),
    mutation(
        "an option that is not listed is allowed",
        "agent/tools/command_rules.py",
        "            if not _is_listed(word, options):",
        "            if False:",
        RULES,
    ),
    mutation(
        "expansions pass for plain words",
        "agent/tools/command_rules.py",
        r'_PLAIN_WORD = re.compile(r"(?:[\w./@%+,^-]|',
        r'_PLAIN_WORD = re.compile(r"(?:[\w./@%+,^*?{}-]|',
        RULES,
    ),
    mutation(
        "a command is allowed before its end was on the screen",
        "chat/terminal/approval.py",
        "        return self._seen >= len(self._rows)",
        "        return True",
        f"{TERMINAL} -k once_its_end",
    ),
    # -- redaction ---------------------------------------------------------------------------------------
    mutation(
        "what a redaction leaves is not reported",
        "sessions/redaction.py",
        "    return Redaction(total, (*await live.store.erase(), *traces))",
        "    return Redaction(total)",
        f"{TRACES} -k 'provider_lists or attachment'",
    ),
    mutation(
        "copies of a deleted parent's events are not redacted",
        "sessions/redaction.py",
        "            waiting += await store.relatives(each.id)\n",
        "",
        f"{TRACES} -k deleted_parent",
    ),
    mutation(
        "values that are named like settings are not redacted",
        "sessions/scrubbing.py",
        '_DATA_FIELDS = frozenset({"input", "arguments", "args", "response"})',
        "_DATA_FIELDS = frozenset[str]()",
        f"{TRACES} -k name_of_a_setting",
    ),
    mutation(
        "sessions that were handed off are not redacted",
        "sessions/redaction.py",
        "            waiting += [record.id for record in await _handoffs(live.store, plan.family)]\n",
        "",
        f"{TRACES} -k handoff",
    ),
    # -- keys and tenants --------------------------------------------------------------------------------
    mutation(
        "a key of the gateway is forwarded percent-encoded",
        "io/access_keys.py",
        '        if "%" not in text:\n            return',
        "        return",
        KEYS,
    ),
    mutation(
        "a page of another site spends the upstream's key",
        "gateway/browsers.py",
        '    return any(site not in ("none", "same-origin") for site in sites)',
        "    return False",
        BROWSERS,
    ),
    mutation(
        "every origin is listed",
        "gateway/browsers.py",
        "    return origin in listed or (",
        "    return True or (",
        BROWSERS,
    ),
    mutation(
        "one owner's logins end those of others",
        "web/access.py",
        "own = [value for value, other in self._logins.items() if other.owner == login.owner]",
        "own = list(self._logins)",
        "tests/web/test_web_access.py -k logs_out_nobody",
    ),
)
