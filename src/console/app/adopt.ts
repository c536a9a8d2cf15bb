/** Adds the styles of a part of the page that was loaded later. The bundler imports their files as text. */
export function adopt(...texts: readonly string[]): void {
  for (const text of texts) {
    if (adopted.has(text)) continue;
    adopted.add(text);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}

/** Several parts share some of them. */
const adopted = new Set<string>();
