/**
 * Gemini CLI in headless mode. The flags and the events follow its documentation (docs/cli/headless.md of the package) and
 * the output of version 0.61.0. In this mode, a tool that needs an approval is not offered to the model, unless arguments
 * allow it.
 */
import * as z from "zod";
import { oneLine } from "../../show/output.ts";
import { absent, type Preset, type Seen, TOOL_MAX } from "./preset.ts";
import { providerCause } from "./provider-words.ts";

const eventSchema = z.object({
  type: z.string(),
  session_id: absent(z.string()),
  role: absent(z.string()),
  content: absent(z.string()),
  tool_name: absent(z.string()),
  severity: absent(z.string()),
  message: absent(z.string()),
  status: absent(z.string()),
  error: absent(z.object({ type: absent(z.string()), message: absent(z.string()) })),
});
type Event = z.infer<typeof eventSchema>;

export const gemini: Preset = {
  program: "gemini",
  name: "Gemini CLI",
  args: (session, extra, folders) => [
    ...["--output-format", "stream-json", "--skip-trust"],
    ...folders.flatMap((folder) => ["--include-directories", folder]),
    ...(session === undefined ? [] : ["--resume", session]),
    ...extra,
  ],
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
  readStderr: (line) => (line.startsWith("Error resuming session:") ? { isGone: true } : {}),
};

function seen({ type, session_id, role, content, tool_name, severity, message, status, error }: Event): Seen {
  switch (type) {
    case "init":
      return { session: session_id ?? undefined };
    case "message":
      return role === "assistant" ? { began: true, answerMore: content ?? "" } : {};
    case "tool_use":
      // What it said before is no answer.
      return { began: true, answer: "", progress: tool_name ?? "a tool" };
    case "tool_result":
      return error?.type === "policy_violation"
        ? { refused: [oneLine(error.message ?? "a tool", TOOL_MAX)] }
        : {};
    case "error":
      return severity === "error"
        ? { failure: message ?? "an error", progress: message ?? undefined }
        : { progress: message ?? undefined };
    case "result":
      return status === "error" && error?.message
        ? { failure: error.message, ...providerCause(error.message) }
        : {};
    default:
      return {};
  }
}
