/** Expressions designed to be expensive to evaluate; most are accepted when they are stored. */
import type { Random } from './hostile-documents.ts'

/** A header of the visitor with 8,000 characters. */
const long = "req.headers['x-long'][0]"

const shapes: readonly ((inner: () => string, variable: string, r: Random) => string)[] = [
  (inner, v, r) => `lists.range(${1 + r(9999)}).all(${v}, ${inner()} != ${inner()})`,
  (inner, v, r) => `lists.range(${1 + r(3000)}).exists(${v}, dyn(${inner()}) == ${v})`,
  (inner, v, r) => `lists.range(${1 + r(3000)}).map(${v}, ${inner()})`,
  (inner, v, r) => `lists.range(${1 + r(3000)}).filter(${v}, ${inner()} == dyn(${inner()}))`,
  (inner, v) => `req.headers.all(${v}, string(dyn(${inner()})) != ${v})`,
  (inner) => `[${inner()}, ${inner()}, ${inner()}]`,
  (inner) => `{'a': ${inner()}, 'b': ${inner()}}`,
  (inner) => `(dyn(${inner()}) + dyn(${inner()}))`,
  (inner) => `(dyn(${inner()}) || dyn(${inner()}) || true)`,
  (inner) => `(dyn(${inner()}) == dyn(${inner()}) ? dyn(${inner()}) : dyn(${inner()}))`,
  (inner) => `string(dyn(${inner()})).replace('a', string(dyn(${inner()})))`,
  (inner, _, r) => `string(dyn(${inner()})).replace('${'a'.repeat(r(50))}', '${'ab'.repeat(r(200))}')`,
  (inner) => `string(dyn(${inner()})).matches(string(dyn(${inner()})))`,
  (inner, _, r) => `string(dyn(${inner()})).matches('[ab]*a[ab]{${r(99)}}c')`,
  (inner, _, r) => `string(dyn(${inner()})).matches(string(rand.int(0, 99999)) + 'a{${1 + r(90)}}')`,
  (inner, _, r) => `string(dyn(${inner()})).contains('b' + ${long}.substring(0, ${r(4000)}))`,
  (inner, _, r) => `string(dyn(${inner()})).lastIndexOf(${long}.substring(0, ${r(4000)}) + 'b')`,
  (inner, _, r) => `string(dyn(${inner()})).split('${'a'.repeat(r(3))}')`,
  (inner) => `string(dyn(${inner()})).split('').join(string(dyn(${inner()})))`,
  (inner) => `string(dyn(${inner()})).reverse().upper()`,
  (inner) => `json.encode(${inner()})`,
  (inner) => `json.decode(json.encode([${inner()}, ${inner()}]))`,
  (inner) => `hash.sha512(json.encode(${inner()}))`,
  (inner) => `url.escape(json.encode(${inner()}))`,
  (inner) => `queryString.decode(json.encode(${inner()}))`,
  (inner) => `size(dyn(${inner()}))`,
  (inner) => `dyn(${inner()}).sort()`,
  (inner) => `dyn(${inner()}).distinct()`,
  (inner) => `dyn(${inner()}).flatten(8)`,
  (inner, _, r) => `'${'%s %.3f %x '.repeat(1 + r(60))}'.format([${inner()}, 1.5, 10])`,
  (inner) => `timestamp(dyn(${inner()})).getHours('Europe/' + string(rand.int(0, 999)))`,
  (inner) => `(${inner()} in dyn(${inner()}))`,
  (inner) => `inCidrRange(conn.client_ip, string(rand.int(1, 200)) + '.0.0.0/8') || dyn(${inner()}) == 1`,
  (inner) => `url.parse('https://' + string(dyn(${inner()})) + '.example/').host`,
]

const leaves = ['1', "'a'", '1.5', long, 'req.headers', 'req', 'req.url', 'conn', 'req.cookies', 'lists.range(5000)']

/** Evaluates to true or false, or fails; loops are nested at most three deep, the limit of the check. */
export function hostileExpression(random: Random): string {
  const make = (depth: number, loops: number): string => {
    if (depth === 0) return leaves[random(leaves.length)] ?? '1'
    // The first five are loops.
    const first = loops < 3 ? 0 : 5
    const shape = shapes[first + random(shapes.length - first)]
    const inside = shape && shapes.indexOf(shape) < 5 ? loops + 1 : loops
    return shape?.(() => make(depth - 1, inside), `v${depth}`, random) ?? '1'
  }
  return `dyn(${make(1 + random(4), 0)}) != 7`
}
