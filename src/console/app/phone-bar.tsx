import { mine } from "../needs/mine.ts";
import { href, type View } from "./route.ts";

/** On a phone, the main views are under the thumb. */
export function PhoneBar({ view }: { readonly view: View }) {
  const waiting = mine.value.length;
  const entry = (name: View, title: string) => (
    <a href={href(name)} aria-current={view === name ? "page" : undefined}>
      {title}
      {name === "needs" && waiting > 0 && <span class="badge">{waiting}</span>}
    </a>
  );
  return (
    <nav class="phone-bar" aria-label="Main views">
      {entry("needs", "Needs you")}
      {entry("live", "Live")}
      {entry("find", "Find")}
      {entry("agents", "Agents")}
      {entry("charts", "Charts")}
    </nav>
  );
}
