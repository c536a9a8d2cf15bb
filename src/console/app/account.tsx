import { useRef } from "preact/hooks";
import { session } from "../session/session.ts";
import { signOut } from "../session/sign-out.ts";
import { nameOf } from "../ui/words.ts";
import { helpIsOpen } from "./keys.ts";
import { mayNotify, wantsNotices } from "./notices.ts";
import { href } from "./route.ts";
import { THEME_WORDS, THEMES, theme } from "./theme.ts";

/** The signed-in principal, and the settings of this browser. */
export function Account() {
  const menu = useRef<HTMLDetailsElement>(null);
  const principal = session.value?.principal ?? "";
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  const leave = (event: FocusEvent) => {
    if (event.relatedTarget instanceof Node && !menu.current?.contains(event.relatedTarget)) close();
  };
  return (
    <details
      class="account"
      ref={menu}
      onFocusOut={leave}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !menu.current?.open) return;
        event.stopPropagation();
        close();
        menu.current.querySelector("summary")?.focus();
      }}
    >
      <summary title={principal}>{nameOf(principal)}</summary>
      <div class="menu">
        <p>
          Signed in as <b>{principal}</b>
        </p>
        <label>
          <span>Theme</span>
          <select
            value={theme.value}
            onChange={({ currentTarget }) => {
              theme.value = THEMES.find((one) => one === currentTarget.value) ?? "system";
            }}
          >
            {THEMES.map((one) => (
              <option key={one} value={one}>
                {THEME_WORDS[one]}
              </option>
            ))}
          </select>
        </label>
        {mayNotify && (
          <label class="check">
            <input
              type="checkbox"
              checked={wantsNotices.value}
              onChange={({ currentTarget }) => void askForNotices(currentTarget)}
            />
            <span>Notify me of questions</span>
          </label>
        )}
        <a href={href("agents", { part: "notifications" })} onClick={close}>
          Notifications when it is closed
        </a>
        <button
          type="button"
          onClick={() => {
            close();
            helpIsOpen.value = true;
          }}
        >
          Keyboard <kbd>?</kbd>
        </button>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </details>
  );
}

async function askForNotices(box: HTMLInputElement): Promise<void> {
  wantsNotices.value = box.checked && (await Notification.requestPermission()) === "granted";
  box.checked = wantsNotices.value;
}
