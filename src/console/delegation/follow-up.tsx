import { useRef } from "preact/hooks";
import * as z from "zod";
import { randomKey } from "../../client/random-key.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";
import { useKept } from "../ui/use-kept.ts";

const textSchema = z.string();

/** A message to the agent while it works. */
export function FollowUp({ id, onSent }: { readonly id: string; readonly onSent: () => void }) {
  const text = useKept(`follow-up/${id}`, textSchema, "");
  const { isRunning, error, run, again } = useAction();
  /** If its answer was lost, the same text is the same message. */
  const last = useRef({ text: "", messageId: "" });
  const submit = (event: Event) => {
    event.preventDefault();
    const sent = text.value;
    if (last.current.text !== sent) last.current = { text: sent, messageId: randomKey() };
    const message = { messageId: last.current.messageId, parts: [{ text: sent }] };
    void run(async () => {
      await session.value?.connection.delegator.message(id, message);
      last.current = { text: "", messageId: "" };
      // What was typed meanwhile was not sent.
      if (text.value === sent) text.value = "";
      onSent();
    });
  };
  return (
    <form class="follow-up" onSubmit={submit}>
      <textarea
        rows={2}
        aria-label="A follow-up for the agent"
        placeholder="Say more to the agent"
        required
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
        onKeyDown={sendByCtrlEnter}
      />
      <button type="submit" title="Ctrl+Enter" disabled={isRunning || text.value.trim() === ""}>
        Send
      </button>
      <Problem error={error} again={again} />
    </form>
  );
}
