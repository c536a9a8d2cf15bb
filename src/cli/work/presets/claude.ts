/**
 * Claude Code in print mode. The flags and the events follow https://code.claude.com/docs/en/headless.
 * Limit: tested with a small program that prints these events, not with Claude Code.
 */
import { z } from "zod";
import type { Preset, Seen } from "./preset.ts";

const contentSchema = z.object({
  type: z.string(),
  text: z.string().optional(),
  name: z.string().optional(),
});
const eventSchema = z.object({
  type: z.string(),
  subtype: z.string().optional(),
  session_id: z.string().optional(),
  is_error: z.boolean().optional(),
  result: z.string().optional(),
  message: z
    .object({ content: z.array(contentSchema) })
    .optional()
    .catch(undefined),
});

export const claude: Preset = {
  program: "claude",
  install:
    "Install Claude Code with 'npm install -g @anthropic-ai/claude-code', and sign in by running 'claude'.",
  // stream-json needs --verbose.
  args: (session, extra) => [
    ...["-p", "--output-format", "stream-json", "--verbose"],
    ...(session === undefined ? [] : ["--resume", session]),
    ...extra,
  ],
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
};

function seen({
  type,
  subtype,
  session_id: session,
  is_error,
  result,
  message,
}: z.infer<typeof eventSchema>): Seen {
  if (type === "result") {
    const failed = is_error === true || (subtype !== undefined && subtype !== "success");
    return { session, ...(failed ? { error: result || subtype || "error" } : { answer: result ?? "" }) };
  }
  if (type !== "assistant") return { session };
  const last = message?.content.findLast((part) => part.text || part.name);
  return { session, progress: last?.text ?? last?.name };
}
