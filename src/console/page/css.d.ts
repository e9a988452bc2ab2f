/** The bundler gives the text of a style sheet. */
declare module "*.css" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: a bundler gives it so
  export default text;
}
