/**
 * Codex CLI in non-interactive mode. The flags and the events follow
 * https://developers.openai.com/codex/noninteractive.
 * Limit: tested with a small program that prints these events, not with Codex.
 */
import { z } from "zod";
import type { Preset, Seen } from "./preset.ts";

const eventSchema = z.object({
  type: z.string(),
  thread_id: z.string().optional(),
  message: z.string().optional(),
  error: z.object({ message: z.string() }).optional().catch(undefined),
  item: z
    .object({ type: z.string(), text: z.string().optional(), command: z.string().optional() })
    .optional()
    .catch(undefined),
});

export const codex: Preset = {
  program: "codex",
  install: "Install Codex with 'npm install -g @openai/codex', and sign in with 'codex login'.",
  // Flags come before 'resume'; '-' reads the prompt from stdin.
  args: (session, extra) => [
    ...["exec", "--json", ...extra],
    ...(session === undefined ? [] : ["resume", session]),
    "-",
  ],
  read: (event) => {
    const { data } = eventSchema.safeParse(event);
    return data ? seen(data) : {};
  },
};

function seen({ type, thread_id, message, error, item }: z.infer<typeof eventSchema>): Seen {
  if (type === "thread.started") return { session: thread_id };
  if (type === "turn.failed") return { error: error?.message ?? "the turn failed" };
  // Not every error ends the turn: Codex also reports reconnections.
  if (type === "error") return { progress: message };
  if (item?.type === "agent_message" && type === "item.completed")
    return { answer: item.text ?? "", progress: item.text };
  return { progress: item?.command ?? item?.text };
}
