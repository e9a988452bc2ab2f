/** What Go's text/template prints. The outputs are those of Go 1.26. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileTemplate } from "./template.ts";
import type { TemplateObject } from "./template-value.ts";

const NOTHING: TemplateObject = { typeName: "test data", text: () => "{test}", field: () => undefined };

const CASES: readonly (readonly [action: string, output: string])[] = [
  ['printf "%d %5d|%-5d|%05d|%+d" 42 42 42 42 42', "42    42|42   |00042|+42"],
  ['printf "%x %X %#x %o %#o %b %#b %O" 255 255 255 8 8 5 5 8', "ff FF 0xff 10 010 101 0b101 0o10"],
  ['printf "%c %q %U %#U" 65 65 65 8364', "A 'A' U+0041 U+20AC '€'"],
  ['printf "%5.1f|%-8.2f|%08.3f|%+.0f" 3.14159 2.5 -1.5 2.6', "  3.1|2.50    |-001.500|+3"],
  [
    'printf "%e %E %g %G %.3g" 123456.789 0.00012 1e21 1e-7 1234.5678',
    "1.234568e+05 1.200000E-04 1e+21 1E-07 1.23e+03",
  ],
  [
    'printf "%s|%10s|%-10s|%.2s|%q|%#q" "abc" "abc" "abc" "abc" "a\\"b" "a`b"',
    'abc|       abc|abc       |ab|"a\\"b"|"a`b"',
  ],
  ['printf "%x %X % x %#x %# x" "hi" "hi" "hi" "hi" "hi"', "6869 6869 68 69 0x6869 0x68 0x69"],
  ['printf "%v %+v %#v %T" "s" "s" "s" "s"', 's s "s" string'],
  ['printf "%v %#v %T %t" true false true true', "true false bool true"],
  ['printf "%d" "a"', "%!d(string=a)"],
  ['printf "%s" 5', "%!s(int=5)"],
  ['printf "%!" ', "%!!(MISSING)"],
  ['printf "%d"', "%!d(MISSING)"],
  ['printf "%d" 1 2', "1%!(EXTRA int=2)"],
  ['printf "%[2]d %[1]d" 1 2', "2 1"],
  ['printf "%[3]d" 1 2', "%!d(BADINDEX)"],
  ['printf "%[1]d %d" 1 2', "1 2"],
  ['printf "%*d|%-*d|" 5 1 5 1', "    1|1    |"],
  ['printf "%.*f" 2 3.14159', "3.14"],
  ['printf "%z" 3', "%!z(int=3)"],
  ['printf "%%|%5%|" ', "%|%|"],
  ['printf "%t" 1', "%!t(int=1)"],
  ['printf "%v %d" nil nil', "<nil> %!d(<nil>)"],
  ['printf "%6.3v|%.3v" 3.14159 "abcdef"', "  3.14|abc"],
  ['printf "%s %d" "é€" 8364', "é€ 8364"],
  ['printf "%5s|%-5s|%05s" "é" "é" "é"', "    é|é    |0000é"],
  ['printf "%x" -255', "-ff"],
  ['printf "%08b|%o|%#X" 5 64 3054', "00000101|100|0XBEE"],
  ['printf "%+q %+q" "é" 233', "\"\\u00e9\" '\\u00e9'"],
  ['printf "%v" 1.0', "1"],
  ['printf "%v %v" 1e6 1e21', "1e+06 1e+21"],
  ['printf "%g %g" 100000.0 1000000.0', "100000 1e+06"],
  ['printf "% d|% d" 5 -5', " 5|-5"],
  ['printf "%+x %+X" "é" 255', "c3a9 +FF"],
  ['printf "%010d|%-010d|%+010d" -42 42 42', "-000000042|42        |+000000042"],
  ['printf "%3c|%-3c|%03c" 65 66 67', "  A|B  |00C"],
  ['printf "%q" "\\n\\t\\x00"', '"\\n\\t\\x00"'],
  ['printf "%6.2f%%" 99.5', " 99.50%"],
  ['printf "%t %v" false false', "false false"],
  ['print 1 2 "a" "b" 3', "1 2ab3"],
  ['print "a" 1 2 "b"', "a1 2b"],
  ['println "a" 1', "a 1\n"],
  ["print 1.5 2 true", "1.5 2 true"],
  ['printf "%d %s" true 1.5', "%!d(bool=true) %!s(float64=1.5)"],
  ['printf "%v %v" (len "abc") (index "abc" 1)', "3 98"],
  ['html "<a&b>"', "&lt;a&amp;b&gt;"],
  ['js "it\'s </script>"', "it\\'s \\u003C/script\\u003E"],
  ['urlquery "a b&c"', "a+b%26c"],
  ['slice "abcdef" 1 3', "bc"],
  ['len "héllo"', "6"],
  ["eq 1 1 2", "true"],
  ["and 0 1", "0"],
  ['or 0 "x"', "x"],
  ["not 0", "true"],
  ["lt 1 2", "true"],
  ['ge "b" "a"', "true"],
];

describe("functions print what they print in Go", () => {
  for (const [action, output] of CASES)
    it(action, () => assert.equal(compileTemplate(`{{ ${action} }}`).execute(NOTHING), output));
});

it("halves are rounded away from zero, unlike in Go", () => {
  const text = compileTemplate('{{ printf "%.0f %.0f %.0f" 0.5 1.5 2.5 }}').execute(NOTHING);
  assert.equal(text, "1 2 3");
});
