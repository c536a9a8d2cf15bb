/** Adds the styles of a part of the page that was loaded later. The bundler imports their files as text. */
export function adopt(...texts: readonly string[]): void {
  for (const text of texts) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}
