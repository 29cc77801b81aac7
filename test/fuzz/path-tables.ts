/** Edges whose routes guard parts of a service, and paths that try to get past them, from one seed. */
import { Dice } from './smuggling-shapes.ts'

/** A route, and whether a stranger may pass. A guarded one has a prefix, since an exact path guards only itself. */
export interface Part {
  readonly match: string
  readonly isExact?: boolean
  readonly isOpen: boolean
}

export interface PathTable {
  /** A label of a host name. */
  readonly name: string
  readonly parts: readonly Part[]
}

export const pathTables: readonly PathTable[] = [
  table('deny', { '/': false, '/public': true }),
  table('allow', { '/': true, '/admin': false }),
  table('nested', { '/': true, '/admin': false, '/admin/public': true, '/admin/public/keys': false }),
  table('folders', { '/': false, '/public/': true, '/public/admin': false, '/admin/public/': true }),
  table('letters', { '/': true, '/a': false, '/a/b': true, '/a/b/a': false, '/b': false }),
  table('encoded', { '/': true, '/caf\u00e9': false, '/my docs': false }),
  table('decoded', { '/': false, '/caf\u00e9': true, '/my docs': true }),
  table('dotted', { '/': false, '/v1.0': true, '/.well-known': true, '/v1.0/.admin': false }),
  {
    name: 'exact',
    parts: [
      { match: '/', isOpen: false },
      { match: '/public', isExact: true, isOpen: true },
      { match: '/a/b', isExact: true, isOpen: true },
    ],
  },
]

function table(name: string, parts: Readonly<Record<string, boolean>>): PathTable {
  return { name, parts: Object.entries(parts).map(([match, isOpen]) => ({ match, isOpen })) }
}

export interface Attempt {
  readonly table: PathTable
  /** The path as sent. */
  readonly path: string
}

/** Names of segments, few enough that paths come near the routes of a table. */
const names = [
  'admin',
  'public',
  'keys',
  'a',
  'b',
  'x',
  'caf%C3%A9',
  'my%20docs',
  'caf%c3%a9',
  'v1.0',
  'v1%2e0',
  '.admin',
]
const slashes = ['/', '/', '/', '/', '//', '\\', '%2f', '%2F', '%5c', '%5C', '/./', '/;/', '/;x=1/', '///']
const climbs = [
  '..',
  '..',
  '%2e%2e',
  '.%2E',
  '%2e.',
  '..;',
  '..;x',
  '..%3b',
  ';..',
  '.',
  '%2e',
  '.;',
  '...',
  '..%00',
  '',
]
const tails = [
  '',
  '',
  '',
  '/',
  ';',
  ';x',
  '%20',
  '%2f',
  '.',
  '/.',
  '/..',
  '%3b',
  '%3f',
  '%23',
  '%25',
  '?',
  '?/../admin',
  '\\',
]
const strange = '!"$&\'()*+,-.:<=>@[]^_`{|}~'.split('')

/** Generates attempts without end, the same for the same seed. */
export function* attempts(seed: number): Generator<Attempt, never> {
  const dice = new Dice(seed)
  for (;;) {
    const table = dice.pick(pathTables)
    yield { table, path: dice.chance(40) ? betweenParts(dice, table) : pathOf(dice) }
  }
}

/** A path from one part to another, with as many `..` as that takes, or nearly as many. */
function betweenParts(dice: Dice, { parts }: PathTable): string {
  const [from, to] = [segmentsOf(dice.pick(parts)), segmentsOf(dice.pick(parts))]
  const climbing = Array.from({ length: from.length + dice.below(3) - 1 }, () => dice.pick(climbs))
  let path = ''
  for (const segment of [...from, ...climbing, ...to]) {
    path += dice.chance(70) ? '/' : dice.pick(slashes)
    path += dice.chance(85) ? segment : written(dice, segment)
  }
  path += dice.pick(tails)
  return path.startsWith('/') ? path : `/${path}`
}

function segmentsOf({ match }: Part): string[] {
  return encodeURI(match).split('/').slice(1)
}

function pathOf(dice: Dice): string {
  let path = dice.chance(90) ? '/' : dice.pick(slashes)
  const segments = 1 + dice.below(5)
  for (let i = 0; i < segments; i++) {
    if (i > 0) path += dice.pick(slashes)
    path += dice.chance(35) ? dice.pick(climbs) : written(dice, dice.pick(names))
  }
  path += dice.pick(tails)
  return path.startsWith('/') ? path : `/${path}`
}

/** A segment, sometimes with a needless escape, a parameter or a strange character. */
function written(dice: Dice, name: string): string {
  if (name === '' || dice.chance(75)) return name
  const at = dice.below(name.length)
  const character = name.charAt(at)
  if (dice.chance(60) && /[a-z]/.test(character) && !name.includes('%')) {
    const digits = character.charCodeAt(0).toString(16)
    // Decoding a double escape once leaves an escape.
    return name.slice(0, at) + (dice.chance(15) ? `%25${digits}` : `%${digits}`) + name.slice(at + 1)
  }
  return name + dice.pick([';', ';x', ';x=/', '%3b', ...strange])
}
