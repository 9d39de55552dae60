"""Shortened results: which ones are, their own lines, and descriptions of their images (P12, H3)."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

from holdfast import compact

Json = dict[str, Any]
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 2_000}}


def text_of(name: str, lines: int = 300) -> str:
    return "\n".join(f"{name}_value_{at} = compute_{name}_{at}(tide_{at})" for at in range(lines))


def compacted(contents: dict[str, Any], *later: Json, target: int = 3_000) -> dict[str, str]:
    """The results of parallel calls after compaction; the last messages, unless `later` ones follow."""
    talk = [[("user", f"about berth K{at} " * 20), ("assistant", f"answer {at} " * 60)] for at in range(12)]
    messages: list[Json] = [{"role": role, "content": text} for turn in talk for role, text in turn]
    messages.append({"role": "user", "content": "Compare them: beta_value_7 and alpha_value_9."})
    calls = [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": f"/srv/{id}.py"}} for id in contents]
    results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in contents.items()]
    messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    result = compact([*messages, *later], budget=target + 3_000, target=target, format="anthropic")
    answers = next(message for message in result.messages if "tool_result" in str(message["content"]))
    return {block["tool_use_id"]: str(block["content"]) for block in answers["content"]}


def test_parallel_results_keep_their_own_lines() -> None:
    short = "gamma_short_1 = only_here_4711(beta_value_7)"
    shown = compacted({"a": text_of("alpha"), "b": text_of("beta"), "c": short})
    assert "alpha_value" in shown["a"] and "beta_value" in shown["b"]
    assert "beta_value" not in shown["a"] and "alpha_value" not in shown["b"]
    assert shown["c"] == short and short not in shown["a"] + shown["b"]


def test_image_in_shortened_result_is_described() -> None:
    shown = compacted({"a": [{"type": "text", "text": text_of("alpha")}, PICTURE], "b": "fine"})
    (only,) = literal_eval(shown["a"])
    assert only["text"].startswith("[cut: ") and "image" in only["text"]


def test_h10_result_that_the_model_has_not_read_is_whole_beyond_the_target() -> None:
    large, small = text_of("alpha", 150), text_of("beta", 80)
    assert compacted({"a": large, "b": small}) == {"a": large, "b": small}


def test_h10_of_results_that_do_not_fit_the_longest_keeps_beginning_and_end() -> None:
    large, small = text_of("alpha", 3_000), text_of("beta", 80)
    shown = compacted({"a": large, "b": small})
    assert shown["b"] == small
    mark, first, *_ = shown["a"].splitlines()
    assert mark.startswith("[cut: ") and large.startswith(first) and large.endswith(shown["a"].splitlines()[-1])
    assert " characters left out: ask for them in parts]" in shown["a"]


def test_result_that_a_reply_has_followed_is_shortened() -> None:
    reply = {"role": "assistant", "content": "They differ in one line. " * 80}
    shown = compacted({"a": text_of("alpha", 300), "b": text_of("beta", 80)}, reply)
    assert shown["a"].startswith("[cut: ") and shown["b"].startswith("[cut: ")


def test_room_that_is_left_keeps_results_whole_next_to_one_that_is_too_large() -> None:
    contents = {"a": text_of("alpha", 2_000), "b": text_of("beta", 250), "c": text_of("gamma", 150)}
    reply = {"role": "assistant", "content": "They differ in one line."}
    shown = compacted(contents, reply, target=28_000)
    assert shown["a"].startswith("[cut: ")
    assert (shown["b"], shown["c"]) == (contents["b"], contents["c"])
