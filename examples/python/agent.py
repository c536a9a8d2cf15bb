#!/usr/bin/env python3
"""An Errand agent in Python's standard library (3.9 or newer), by docs/agent-protocol.md; the numbers in square
brackets are those of its conformance list. Copy it and replace count_words() by your own work.
Limit: one delegation at a time; start it several times for more.

    ERRAND_URL=http://127.0.0.1:4180 ERRAND_TOKEN=errand_… python3 agent.py scout
"""
import argparse
import datetime
import http.client
import itertools
import json
import os
import queue
import random
import re
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

POLL_SECONDS = 20  # below the idle cut of common proxies
LONGEST_HOLD_SECONDS = 25
CONFIRM_SECONDS = 5
ANSWER_SECONDS = 15  # beyond the hold: later, the connection counts as dead
STOP_SECONDS = 10
LATE_SECONDS = 5  # a tick that is later shows that the process was paused
LONGEST_ANSWER, LONGEST_ERROR = 16 * 1024 * 1024, 64 * 1024
STOPPING, ASKED, SILENT = "stopping", "interrupted", "the broker is silent"


class Away(Exception):
    """No answer of the broker, or one that says 'later'; the request may still have been executed."""

    def __init__(self, why, status=0, retry_after=0.0):
        super().__init__(why)
        self.status, self.retry_after = status, retry_after


class Refused(Exception):
    """A refusal by the broker; repeating the same request would not help."""

    def __init__(self, status, problem):
        self.status, self.code = status, problem.get("code", "invalid_response")
        details = problem.get("details")
        self.details = details if isinstance(details, dict) else {}
        self.reason = self.details.get("reason", self.code)
        super().__init__(f"{status} {self.code}: {problem.get('detail', 'no problem document')}")


class Ended(Exception):
    """Stop this work: the lease is gone, or the agent stops. Do not catch it in your handler."""


class Failure(Exception):
    """For handlers: the work ends as `state`, failed or rejected; a retryable failure gets another attempt."""

    def __init__(self, state, code, message, retryable=False):
        super().__init__(message)
        self.reply = {"state": state, "error": {"code": code, "message": message, "retryable": retryable}}


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # never sends the token to another host [1]


def log(text):
    print(text, file=sys.stderr, flush=True)


def backoff(failures, retry_after=0.0):
    """250 ms doubling to 15 s, half of it random, never less than Retry-After [12]."""
    ceiling = min(15.0, 0.25 * 2 ** min(failures, 16))
    wait = ceiling / 2 + random.random() * ceiling / 2
    return wait if retry_after <= wait else retry_after + random.random() / 4


def moment():
    """By both clocks: one stands still while the machine sleeps, the other may be set."""
    return time.monotonic(), time.time()


def since(then):
    return max(now - before for now, before in zip(moment(), then))


def shown(text, most=80):
    """The first words of a foreign answer, on one line, without characters that control a terminal."""
    words = "".join(one if one.isprintable() else " " for one in re.sub(r"<[^<>]*>", " ", text[:2000])).split()
    return " ".join(words)[:most]


def body_of(answer, most, until):
    """At most this many bytes; Away if they take too long: others may send a little for ever [3]."""
    body = b""
    while len(body) < most:
        chunk = answer.read1(65536)
        if not chunk:
            break
        body += chunk
        if time.monotonic() > until:
            raise Away("the answer takes too long")
    return body.decode("utf-8", "replace")


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def text_of(message):
    return "\n".join(part["text"] for part in message.get("parts") or [] if "text" in part)


class Broker:
    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token
        self.opener = urllib.request.build_opener(NoRedirects)
        self.id = None

    def post(self, path, body, hold=0.0, timeout=ANSWER_SECONDS):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            try:
                answer = self.opener.open(request, timeout=hold + timeout)  # [3]
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                return self.read(answer, time.monotonic() + hold + timeout)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Away(str(error) or type(error).__name__) from None

    def read(self, answer, until):
        """What the broker says. An answer without its id is somebody else's, and final for nobody [7, 12, 14]."""
        status, is_ours = answer.status, False
        if 200 <= status < 300:
            is_ours = self.is_from(answer.headers.get("Errand-Broker"))
        text = body_of(answer, LONGEST_ANSWER if is_ours else LONGEST_ERROR, until)
        if is_ours:
            return json.loads(text)
        after = answer.headers.get("Retry-After", "")
        retry_after = float(after) if re.fullmatch("[0-9]{1,9}", after) else 0.0
        try:
            problem = json.loads(text)
        except (ValueError, RecursionError):
            problem = None
        is_problem = isinstance(problem, dict) and "code" in problem and status >= 400
        is_later = status in (408, 429) or status >= 500
        if not is_problem or not self.is_from(problem.get("broker_id")):
            kind, words = (
                shown(said.replace(self.token, "***")) or "nothing"
                for said in (answer.headers.get("Content-Type") or "no content type", text)
            )
            why = f"{self.url} answered with HTTP {status}, {kind}, '{words}', which is not this broker's answer"
            if self.id is None and not is_later:  # nobody has answered yet: the address is probably wrong
                raise Refused(status, {"code": "invalid_response", "detail": why})
            raise Away(why, 0, min(retry_after, 60.0))
        if is_later:
            raise Away(f"it answered {status}", status, retry_after)
        raise Refused(status, problem)

    def is_from(self, broker_id):
        """The first answer that has an id decides which broker is ours."""
        self.id = self.id or broker_id
        return broker_id is not None and broker_id == self.id


class Work:
    """One lease: the task, and the calls on it. Its methods raise Ended when the work must stop."""

    def __init__(self, broker, lease):
        self.broker, self.lease = broker, lease
        self.id, self.path = lease["delegation"]["id"], "/v1/leases/" + lease["lease_id"]
        held = lease["delegation"]["lease"]
        # From the broker's two instants; its clock is never compared with ours [6].
        self.seconds = instant(held["expires_at"]) - instant(held["granted_at"])
        self.answered_at = moment()
        self.ended, self.why = threading.Event(), ""
        self.told_at, self.chunks = float("-inf"), {}
        self.answers, self.said, self.known, self.seen = {}, queue.SimpleQueue(), set(), None
        self.taking = threading.Lock()
        # Earlier answers and follow-ups, perhaps to another worker, are in the history [18].
        for message in lease["delegation"]["history"]:
            about = message.get("metadata") or {}
            if message.get("role") == "ROLE_USER" and "interrupt_id" in about:
                self.answers[about.get("request_id")] = message
            elif message.get("role") == "ROLE_USER":
                self.take([message])

    @property
    def text(self):
        return text_of(self.lease["delegation"]["message"])

    def ask(self, request_id, text, **more):
        """The text of the answer, or None if it has none (a bare decision). Without an answer this run ends here, and the
        answer starts the handler again. more: kind ("input" or "auth"), options, schema, action, edit,
        expires_in_seconds."""
        if request_id not in self.answers:
            body = {"kind": "input", "request_id": request_id, "text": text, **more}
            raised = self.insist(lambda: self.send("interrupt", body))  # a repeat is the same question [17]
            if "answers" not in raised:
                self.end(ASKED)
                raise Ended(ASKED)
            self.answers[request_id] = raised["answers"][request_id]["message"]
        return text_of(self.answers[request_id]) or None

    def decision(self, request_id):
        """The answer's decision: "approve", "deny", or None."""
        return self.answers[request_id]["metadata"].get("decision")

    def follow_ups(self):
        """The texts of the follow-ups since the last call, oldest first."""
        texts = []
        while not self.said.empty():
            texts.append(text_of(self.said.get()))
        return texts

    def take(self, messages):
        with self.taking:
            for message in messages:
                self.seen = message["messageId"]
                if self.seen not in self.known:  # repeated until a heartbeat marks them as seen [19]
                    self.known.add(self.seen)
                    self.said.put(message)

    def progress(self, **said):
        """message, current_step, tools_used, done, total, eta_seconds; at most two a second are sent."""
        self.wait(0)
        if time.monotonic() - self.told_at >= 0.5:
            self.told_at = time.monotonic()
            try:
                self.beat(progress=said)
            except (Away, Refused):
                pass  # the next one, or the reply, replaces it

    def artifact(self, artifact_id, chunk, last=False):
        """Streams a piece of output. The first chunk replaces what was sent before a question."""
        parts = self.chunks.setdefault(artifact_id, [])
        parts.append({"text": chunk})
        whole = len(parts) == 1

        def send():
            nonlocal whole
            artifact = {"artifactId": artifact_id, "parts": parts if whole else parts[-1:]}
            try:
                self.send("artifacts", {"artifact": artifact, "append": not whole, "last_chunk": last})
            except Away:
                whole = True  # it may have arrived; sending the whole artifact cannot duplicate it [11]
                raise

        self.insist(send)

    def wait(self, seconds):
        """Sleeps until the work must stop. Work that calls nothing else should call wait(0) regularly."""
        if self.ended.wait(max(0.0, seconds)):
            raise Ended(self.why)

    def watch(self):
        """Stops the work once the broker was silent for twice the lease. After a pause of the process, or a clock that
        jumps, it asks at once, and stops the work after 5 s without an answer [8]."""
        tick, looked_at, answered_at, longest = min(1.0, self.seconds / 6), moment(), None, 0.0
        while not self.ended.wait(tick):
            is_late = since(looked_at) > tick + LATE_SECONDS
            looked_at = moment()
            if is_late:
                threading.Thread(target=self.ask_now, daemon=True).start()
            if answered_at != self.answered_at:
                answered_at, longest = self.answered_at, 2 * self.seconds
            silent = since(answered_at)
            if is_late and silent > self.seconds:
                longest = silent + LATE_SECONDS
            if silent > longest:
                self.end(SILENT)

    def ask_now(self):
        try:
            self.beat()
        except (Away, Refused, Ended):
            pass  # it was silent, or the work has ended

    def end(self, why):
        if not self.ended.is_set():
            self.why = why
            self.ended.set()

    def beat(self, hold=0.0, **said):
        sent_at = moment()
        seen = {} if self.seen is None else {"seen": self.seen}
        self.take(self.send("heartbeat", {"wait_seconds": hold, **seen, **said}, hold).get("messages", []))
        self.answered_at = max(self.answered_at, sent_at)

    def keep(self):
        """Heartbeats until the end; held ones, so that a cancel arrives at once [5]."""
        hold = min(LONGEST_HOLD_SECONDS, self.seconds / 3)

        def beat():
            try:
                self.beat(hold)
            except Away as away:
                if away.status != 429:
                    raise
                self.beat()  # too many calls wait; one that does not wait is always accepted
                self.wait(hold)

        try:
            while True:
                asked_at = time.monotonic()
                self.insist(beat)
                # A gateway that shuts down answers early [13].
                self.wait(min(1.0, hold) if time.monotonic() - asked_at < min(1.0, hold / 2) else 0)
        except Refused as refusal:
            self.end(refusal.code)
        except Ended:
            pass

    def insist(self, call):
        """Repeats the call until it is answered, or the work must stop."""
        for failures in itertools.count():
            try:
                return call()
            except Away as away:
                self.wait(backoff(failures, away.retry_after))

    def send(self, what, body, hold=0.0):
        try:
            # Short enough that a dead connection does not cost the lease.
            return self.broker.post(f"{self.path}/{what}", body, hold, min(ANSWER_SECONDS, self.seconds / 3))
        except Refused as refusal:
            if refusal.code not in ("lease_lost", "lease_unknown") and refusal.status not in (401, 403):
                raise
            self.end(refusal.reason)  # [7]
            raise Ended(self.why) from None


class Agent:
    def __init__(self, broker, name, handle):
        self.broker, self.name, self.handle = broker, name, handle
        self.worker_id = f"{socket.gethostname()}:{os.getpid()}"
        self.stopping, self.parked, self.work = threading.Event(), False, None

    def run(self):
        """Works until stop(); raises Refused when repeating cannot help: a revoked token, a deleted agent [14]."""
        lease = None
        while not self.stopping.is_set():
            lease = self.serve(lease) if lease else self.poll()
        if lease:  # it came with the last reply
            self.release(Work(self.broker, lease))

    def stop(self):
        self.stopping.set()
        if self.work:
            self.work.end(STOPPING)

    def wanted(self, wait_seconds):
        return {
            "wait_seconds": wait_seconds,
            "confirm_within_seconds": CONFIRM_SECONDS,
            "worker_id": self.worker_id,
        }

    def poll(self):
        """A lease, or None when there was no work."""
        for failures in itertools.count():
            # Nothing parks until the broker's id is known: what answers in its place would look like a wrong address [14].
            hold = POLL_SECONDS if self.broker.id else 0
            self.parked, asked_at = True, time.monotonic()
            try:
                if self.stopping.is_set():
                    return None
                path = f"/v1/agents/{self.name}/leases"
                leases = self.broker.post(path, self.wanted(hold), hold)["leases"]
                if not leases and hold and time.monotonic() - asked_at < 1:
                    self.stopping.wait(backoff(1))  # [13]
                return leases[0] if leases else None
            except Away as away:
                pause = backoff(failures, away.retry_after)
                log(f"the broker is away: {away}; again in {pause:.1f} s")
                self.stopping.wait(pause)
            finally:
                self.parked = False

    def serve(self, lease):
        """From the lease to its end; returns the next lease when one came with the answer to the reply."""
        work = self.work = Work(self.broker, lease)
        try:
            if self.stopping.is_set():
                work.end(STOPPING)
            threading.Thread(target=work.watch, daemon=True).start()
            work.wait(0)
            work.insist(work.beat)  # nobody works on a lease that never arrived [4]
            log(f"{work.id} leased, attempt {lease['attempt']}")
            threading.Thread(target=work.keep, daemon=True).start()
            return self.reply(work, self.outcome(work))
        except Ended as ended:
            if work.why == STOPPING:
                self.release(work)
            elif work.why == SILENT:
                log(f"{work.id} stopped: {ended}")
                self.give_back(work)
            elif work.why == ASKED:
                log(f"{work.id} asks")
            else:
                log(f"{work.id} lost: {ended}")
            return None
        finally:
            work.end("finished")

    def outcome(self, work):
        try:
            reply = {"state": "completed", "text": self.handle(work)}
        except Failure as failure:
            reply = failure.reply
        except Ended:
            raise
        except Exception as error:  # the details go to our log, not to the delegator
            log(f"{work.id} failed: {error!r}")
            reply = Failure("failed", "agent_error", f"the agent failed: {type(error).__name__}").reply
        if work.why not in (STOPPING, SILENT):  # then the result can still be sent
            work.wait(0)
        return reply

    def reply(self, work, body):
        """Repeats the same body until it is accepted: a repeat is a duplicate, never a second reply [9]."""
        refused = False
        for failures in itertools.count():
            more = {} if self.stopping.is_set() else {"next": self.wanted(0)}
            try:
                answer = self.broker.post(f"{work.path}/reply", {**body, **more})
                log(f"{work.id} {answer['delegation']['state']}")
                return next(iter(answer.get("leases", [])), None)
            except Refused as refusal:
                if refusal.code in ("lease_lost", "lease_unknown"):
                    raise Ended(refusal.reason) from None
                if refused or refusal.status not in (400, 413, 422):
                    raise
                refused = True  # the reply itself is wrong, and the delegator waits [10]
                body = Failure("failed", refusal.code, f"the reply was refused: {refusal}").reply
            except Away as away:
                time.sleep(backoff(failures, away.retry_after))

    def release(self, work):
        try:
            self.broker.post(f"{work.path}/release", {"reason": "the worker is stopping"}, timeout=2)
            log(f"{work.id} released")
        except (Away, Refused):
            log(f"{work.id} left to its expiry")

    def give_back(self, work):
        """Repeats the release until the broker answers: the work may still be ours."""
        for failures in itertools.count():
            try:
                self.broker.post(f"{work.path}/release", {"reason": SILENT})
                return log(f"{work.id} released")
            except Refused as refusal:
                return log(f"{work.id} lost: {refusal.reason}")
            except Away as away:
                if self.stopping.wait(backoff(failures, away.retry_after)):
                    return log(f"{work.id} left to its expiry")


def count_words(work, pause, ask):
    """The example's work: words by line as an artifact, the total as the reply. Each follow-up is another line."""
    lines, counts = work.text.splitlines(), []
    if not lines:
        raise Failure("rejected", "no_text", "there is no text to count")
    what = work.ask("what", "Count what?", options=["words", "characters"]) if ask else "words"
    if ask and work.decision("what") == "deny":
        raise Failure("rejected", "denied", f"not to be counted: {what or 'no reason given'}")
    while len(counts) < len(lines):
        line = lines[len(counts)]
        work.progress(message=f"line {len(counts) + 1}", done=len(counts), total=len(lines))
        counts.append(len(line) if what == "characters" else len(line.split()))
        lines += "\n".join(work.follow_ups()).splitlines()
        work.artifact("counts", f"{counts[-1]}\n", last=len(counts) == len(lines))
        work.wait(pause)
    return str(sum(counts))


def main():
    parser = argparse.ArgumentParser(description="Counts words for an Errand broker.")
    parser.add_argument("agent")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a line")
    parser.add_argument("--ask", action="store_true", help="ask first what to count")
    args = parser.parse_args()
    url, token = os.environ.get("ERRAND_URL", "http://127.0.0.1:4180"), os.environ.get("ERRAND_TOKEN", "")
    if not url.startswith(("http://", "https://")) or not token:
        sys.exit("ERRAND_URL must be an http(s) URL, and ERRAND_TOKEN a token of the agent")
    agent = Agent(Broker(url, token), args.agent, lambda work: count_words(work, args.pause, args.ask))
    ends = queue.SimpleQueue()  # safe to use in a signal handler

    def run():
        try:
            agent.run()
        except Exception as error:
            ends.put(str(error) or repr(error))

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ends.put(None))
    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    problem = ends.get()
    agent.stop()  # our exit cuts a parked poll; work in progress is released [15]
    if not agent.parked:
        worker.join(STOP_SECONDS)
    sys.exit(problem)


if __name__ == "__main__":
    main()
