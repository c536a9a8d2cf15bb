import * as z from "zod";
import { randomKey } from "../../client/random-key.ts";
import { session } from "../session/session.ts";
import { Problem } from "../ui/problem.tsx";
import { sendByCtrlEnter } from "../ui/submit-keys.ts";
import { useAction } from "../ui/use-action.ts";
import { keptAs } from "../ui/use-kept.ts";

/** `sent`, `messageId`: what is being sent, or whose answer was lost: sent again, it is the same message. */
const draftSchema = z.object({ text: z.string(), sent: z.string(), messageId: z.string() });
const EMPTY = { text: "", sent: "", messageId: "" };
const useDraft = keptAs(draftSchema);

/** A message to the agent while it works. */
export function FollowUp({ id, onSent }: { readonly id: string; readonly onSent: () => void }) {
  const draft = useDraft(`follow-up/${id}`, EMPTY);
  const { isRunning, error, run, again } = useAction();
  const { text } = draft.value;
  const submit = (event: Event) => {
    event.preventDefault();
    const before = draft.peek();
    const messageId = before.sent === text ? before.messageId : randomKey();
    // Before it is sent: a reload may lose the answer.
    draft.value = { text, sent: text, messageId };
    void run(async () => {
      await session.value?.connection.delegator.message(id, { messageId, parts: [{ text }] });
      // What was typed meanwhile was not sent.
      draft.value = draft.peek().text === text ? EMPTY : { ...EMPTY, text: draft.peek().text };
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
        value={text}
        onInput={({ currentTarget }) => {
          draft.value = { ...draft.peek(), text: currentTarget.value };
        }}
        onKeyDown={sendByCtrlEnter}
      />
      <button type="submit" title="Ctrl+Enter" disabled={isRunning || text.trim() === ""}>
        Send
      </button>
      <Problem error={error} again={again} />
    </form>
  );
}
