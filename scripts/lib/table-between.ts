/** Puts a text between the marks of a page: `<!-- NAME: begin -->` and `<!-- NAME: end -->`. @throws where the page has no such marks */
export function tableBetween(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`no place for it: expected ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}
