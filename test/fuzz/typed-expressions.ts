/** Expressions of a wanted type, made of every function that expressions can call: most do not fail. */
import { type Func, functions, methods } from '../../src/modules/policy/engine/functions.ts'
import type { Kind } from '../../src/modules/policy/engine/policy-shape.ts'
import type { Random } from './hostile-documents.ts'

type Made = Kind | 'strings' | 'ints'

const long = "req.headers['x-long'][0]"
const json = "req.headers['x-json'][0]"

const leaves: Readonly<Partial<Record<Made, readonly string[]>>> = {
  string: [
    long,
    long,
    json,
    'req.url',
    'req.url.path',
    'req.url.query',
    'vars.a',
    "'a'",
    "'ab'",
    "''",
    "'%s %d'",
    'conn.client_ip',
    'time.now',
  ],
  bool: ['true', 'false', "'x-1' in req.headers", 'req.user_agent.is_bot'],
  int: ['0', '1', '3', '50', '300', '5000', 'conn.client_port', 'req.content_length'],
  uint: ['1u', '7u'],
  double: ['1.5', '0.0'],
  bytes: ["b'abc'"],
  strings: ["req.headers['x-1']", "['a', 'b', 'c']"],
  ints: ['lists.range(10)', 'lists.range(300)', 'lists.range(3000)', '[3, 1, 2]'],
  list: ['lists.range(100)', "req.headers['x-long']", '[1, [2, [3]]]'],
  map: ['req.headers', 'req.cookies', 'req.url.query_params', "{'a': 1, 'b': [2]}", 'req'],
  timestamp: ['timestamp(time.now)', 'conn.ts.start', "timestamp('2026-01-01T00:00:00Z')"],
  duration: ["duration('1h')"],
  any: ['vars.a', 'req'],
}

/** Macros and operators, which the tables of functions do not have. */
const forms: Readonly<Partial<Record<Made, readonly ((make: Maker, r: Random) => string)[]>>> = {
  bool: [
    (make) => `${make('ints')}.all(v, v >= ${make('int')})`,
    (make) => `${make('strings')}.exists(v, dyn(v) == ${make('string')})`,
    (make) => `${make('ints')}.exists_one(v, v == ${make('int')})`,
    (make) => `dyn(${make('string')}) == ${make('string')}`,
    (make) => `${make('string')} < ${make('string')}`,
    (make) => `dyn(${make('map')}) == ${make('map')}`,
    (make) => `dyn(${make('ints')}) == ${make('ints')}`,
    (make) => `dyn(${make('int')}) in ${make('ints')}`,
    (make) => `${make('string')} in ${make('map')}`,
    (make) => `(${make('bool')} && ${make('bool')})`,
    (make) => `(${make('bool')} || ${make('bool')})`,
    (make) => `!${make('bool')}`,
    (make, r) => `${make('string')}.matches('${patterns[r(patterns.length)]}')`,
  ],
  string: [
    (make) => `(${make('string')} + ${make('string')})`,
    (make) => `(${make('bool')} ? ${make('string')} : ${make('string')})`,
    (make) => `${make('strings')}.join(${make('string')})`,
    (make) => `'%s %.3f %x'.format([${make('string')}, 1.5, ${make('int')}])`,
  ],
  int: [(make) => `(${make('int')} + ${make('int')})`, (make) => `(${make('int')} * ${make('int')})`],
  strings: [
    (make) => `${make('string')}.split(${make('string')})`,
    (make) => `${make('strings')}.map(v, v + ${make('string')})`,
    (make) => `${make('strings')}.filter(v, dyn(v) != ${make('string')})`,
    (make) => `[${make('string')}, ${make('string')}]`,
  ],
  ints: [
    (make) => `${make('ints')}.map(v, v + ${make('int')})`,
    (make) => `${make('ints')}.filter(v, v > ${make('int')})`,
    (make) => `${make('ints')}.sort()`,
  ],
  list: [
    (make) => `(${make('list')} + ${make('list')})`,
    (make) => `${make('ints')}.map(v, ${make('string')})`,
    (make) => `${make('ints')}.map(v, ${make('map')})`,
    (make) => `[${make('list')}, ${make('list')}]`,
  ],
  map: [(make) => `{'a': ${make('list')}, 'b': ${make('string')}}`, () => `json.decode(${json})`],
}

const patterns = ['a', '^a+$', '(a|b|ab)*c', '[ab]*a[ab]{15}c', '(?i)[a-z]{1,30}', 'x$']

type Maker = (kind: Made) => string

interface Callable {
  readonly name: string
  readonly func: Func
  readonly isMethod: boolean
}

/** Only in the phase of the response, so they are not for rules of requests. */
const isForRequests = ({ func }: Callable): boolean => func.phases?.includes('request') ?? true

const callables: readonly Callable[] = [
  ...Object.entries(functions).map(([name, func]) => ({ name, func, isMethod: false })),
  ...Object.entries(methods).map(([name, func]) => ({ name, func, isMethod: true })),
].filter(isForRequests)

const MAX_DEPTH = 4
/** Longer texts are refused when a policy is stored. */
const MAX_LENGTH = 3000

export function typedExpression(random: Random, kind: Made): string {
  for (;;) {
    const text = make(random, kind, random(MAX_DEPTH))
    if (text.length <= MAX_LENGTH) return text
  }
}

function make(random: Random, kind: Made, depth: number): string {
  const inner: Maker = (wanted) => make(random, wanted, depth - 1)
  const shapes = forms[kind] ?? []
  const fitting = callables.filter(({ func }) => func.gives === kind)
  const known = leaves[kind] ?? leaves.string ?? []
  const choice = depth <= 0 ? -1 : random(shapes.length + fitting.length)
  if (choice < 0 || shapes.length + fitting.length === 0) return known[random(known.length)] ?? "''"
  const shape = shapes[choice]
  if (shape) return `(${shape(inner, random)})`
  const { name, func, isMethod } = fitting[choice - shapes.length] as Callable // within the lists
  const [fewest, most] = func.args
  const count = (isMethod ? 1 : 0) + fewest + random(most - fewest + 1)
  const operands = func.operands.slice(0, count).map((kinds) => inner(kinds[random(kinds.length)] ?? 'any'))
  const [target, ...rest] = operands
  return isMethod ? `${target}.${name}(${rest.join(', ')})` : `${name}(${operands.join(', ')})`
}
