/** Light or dark: as the system says, unless the reader chose one. */
import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
export const THEME_WORDS: Readonly<Record<Theme, string>> = {
  system: "As the system",
  light: "Light",
  dark: "Dark",
};

const KEY = "errand-theme";
const stored = localStorage.getItem(KEY);
export const theme = signal<Theme>(THEMES.find((one) => one === stored) ?? "system");

export function followTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const isDark = theme.value === "dark" || (theme.value === "system" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  };
  dark.addEventListener("change", apply);
  effect(() => {
    localStorage.setItem(KEY, theme.value);
    apply();
  });
}
