/** Styles that a script imports are their text; see `app/adopt.ts`. */
declare module "*.css" {
  export const styles: string;
}
