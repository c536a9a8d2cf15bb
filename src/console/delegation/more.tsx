/** What is needed rarely: the id, the link, the JSON, how texts are shown, and to erase everything. */
import { type Delegation, isTerminal } from "../../schema/delegation.ts";
import { go, hrefClosed, hrefWith } from "../app/route.ts";
import { clearOne } from "../data/delegations.ts";
import { mayRedrive } from "../session/rights.ts";
import { session } from "../session/session.ts";
import { Confirm } from "../ui/confirm.tsx";
import { CopyLine, useCopy } from "../ui/copy.tsx";
import { isFormatting, setFormatting } from "../ui/formatting.ts";
import { Menu } from "../ui/menu.tsx";
import { orGone } from "../ui/or-gone.ts";

export function More({ delegation }: { readonly delegation: Delegation }) {
  const { id, state } = delegation;
  return (
    <Menu label="More">
      {(close) => (
        <>
          <CopyLine text={id} label={`…${id.slice(-8)}`} />
          <CopyLink />
          <a class="button" href={hrefWith({ tab: "raw" })} onClick={close}>
            Raw JSON
          </a>
          <label class="check">
            <input
              type="checkbox"
              checked={isFormatting.value}
              onChange={({ currentTarget }) => setFormatting(currentTarget.checked)}
            />
            <span>Format Markdown</span>
          </label>
          {isTerminal(state) && mayRedrive(delegation) && <Erase id={id} />}
        </>
      )}
    </Menu>
  );
}

function CopyLink() {
  const { verb, copy } = useCopy(location.href, "Copy link");
  return (
    <button type="button" onClick={() => void copy()}>
      {verb}
    </button>
  );
}

function Erase({ id }: { readonly id: string }) {
  const erase = async () => {
    await orGone(session.value?.connection.delegator.delete(id));
    clearOne(id);
    go(hrefClosed());
  };
  return (
    <Confirm
      verb="Erase"
      confirm="Erase for everybody"
      question="Erase this delegation?"
      help="Erase: delete everything about it"
      danger
      onConfirm={erase}
    >
      <p>Its task, conversation, events and artifacts are deleted for everybody. This cannot be undone.</p>
    </Confirm>
  );
}
