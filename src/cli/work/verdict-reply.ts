/** The reply to a delegation by the verdict on the program that worked on it. */
import { WorkerUnavailableError } from "../../client/unavailable.ts";
import type { Reply } from "../../client/work.ts";
import { cutBytes, Head } from "./capture.ts";
import { STDOUT_MAX } from "./child.ts";
import { type ReplyContext, toReply } from "./command-reply.ts";
import { failed } from "./failed-reply.ts";
import type { Facts, Verdict } from "./presets/classify.ts";
import { invalidResult } from "./result.ts";

const ANSWER_MAX = 64 * 1024;

/** The reply of a run that did not do its work has what the model said, besides the error. */
export async function toVerdictReply(
  verdict: Verdict,
  { answer = "", separateResult }: Pick<Facts, "answer" | "separateResult">,
  context: ReplyContext,
): Promise<Reply> {
  switch (verdict.kind) {
    case "completed": {
      const isSeparate = context.result?.isSeparate === true;
      if (isSeparate && separateResult == null)
        return invalidResult("the program handed none over", verdict.answer);
      const stdout = new Head(STDOUT_MAX);
      stdout.add(Buffer.from((isSeparate && separateResult) || verdict.answer));
      return toReply({ exitCode: 0, signal: null, stdout, stdoutEnd: "", stderr: "" }, context);
    }
    case "unable": {
      const { reason, retryAt } = verdict;
      const retryAfterSeconds =
        retryAt === undefined ? undefined : Math.max(0, (retryAt - Date.now()) / 1000);
      throw new WorkerUnavailableError(reason, { retryAfterSeconds });
    }
    case "failed": {
      const reply = failed(verdict.code, verdict.message, verdict.retryable);
      return answer.trim() === "" ? reply : { ...reply, text: cutBytes(answer, ANSWER_MAX) };
    }
    case "gone":
      return failed("command_failed", "the program began no conversation");
  }
}
