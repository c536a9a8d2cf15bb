/**
 * The text in memory of its own. V8 makes a part of a text as a reference into the whole, so a part that is kept, for
 * example as the key of a map, keeps the whole.
 */
export const ownText = (text: string): string => `${text} `.slice(0, -1);
