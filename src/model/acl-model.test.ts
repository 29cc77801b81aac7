/** Compares the matcher of ACL rules with a slow, obviously correct model that needs no parsing to know each rule. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mayBindAddress, mayBindLabel, mayBindName, namesIt } from './acl.ts'

const PAIRS = 20_000

/** The meaning of a rule. */
type Rule =
  | { readonly kind: 'everything' }
  /** Labels from the left, without the wildcard. */
  | { readonly kind: 'name'; readonly labels: readonly string[]; readonly isWildcard: boolean }
  | { readonly kind: 'address'; readonly labels: readonly string[]; readonly port: number }
  /** Undefined means `*`. */
  | { readonly kind: 'label'; readonly key: string | undefined; readonly value: string | undefined }
  /** A rule that is malformed or of an unknown kind. */
  | { readonly kind: 'nonsense'; readonly text: string }

type Bind =
  | { readonly kind: 'name'; readonly labels: readonly string[]; readonly isWildcard: boolean }
  | { readonly kind: 'address'; readonly labels: readonly string[]; readonly port: number }
  | { readonly kind: 'label'; readonly key: string; readonly value: string }

/** Only a few words, so that rules and binds often match; some begin or end like others. */
const word = fc.constantFrom('a', 'b', 'aa', 'b-a', 'com')
const labels = fc.array(word, { minLength: 1, maxLength: 4 })
const port = fc.constantFrom(1, 2, 22, 65_535)
const isWildcard = fc.boolean()
const part = fc.constantFrom('a', 'b', 'A', 'a:b', 'a.com')
const nonsense = fc.constantFrom(
  '',
  'bind',
  'bind:',
  'bind:a.*.com',
  'bind:a..com',
  'a.com',
  'BIND:a.com',
  'bind:a.com:0',
)

const bind: fc.Arbitrary<Bind> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('name' as const), labels, isWildcard }) },
  fc.record({ kind: fc.constant('address' as const), labels, port }),
  fc.record({ kind: fc.constant('label' as const), key: part, value: part }),
)

const rule: fc.Arbitrary<Rule> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('everything' as const) }) },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('name' as const), labels, isWildcard }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('address' as const), labels, port }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('label' as const),
      key: fc.option(part, { nil: undefined }),
      value: fc.option(part, { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('nonsense' as const), text: nonsense }) },
)

/** A name as people may spell it: case and a trailing dot do not matter. */
const spelling = fc.record({ isUpper: fc.boolean(), hasDot: fc.boolean(), isShort: fc.boolean() })
type Spelling = typeof spelling extends fc.Arbitrary<infer T> ? T : never

function spell(meant: Rule, { isUpper, hasDot, isShort }: Spelling): string {
  const name = (all: readonly string[]): string => {
    const text = `${all.join('.')}${hasDot ? '.' : ''}`
    return isUpper ? text.toUpperCase() : text
  }
  switch (meant.kind) {
    case 'everything':
      return isShort ? '*' : 'bind:*'
    case 'name':
      return `bind:${name(meant.isWildcard ? ['*', ...meant.labels] : meant.labels)}`
    case 'address':
      return `bind:${name(meant.labels)}:${meant.port}`
    case 'label':
      return `bind:${meant.key ?? '*'}=${meant.value ?? '*'}`
    case 'nonsense':
      return meant.text
  }
}

/** The slow model. */
function allows(meant: Rule, wanted: Bind): boolean {
  if (meant.kind === 'everything') return true
  if (meant.kind === 'name' && wanted.kind === 'name') return coversName(meant, wanted)
  if (meant.kind === 'address' && wanted.kind === 'address') {
    return same(meant.labels, wanted.labels) && meant.port === wanted.port
  }
  if (meant.kind === 'label' && wanted.kind === 'label') {
    const isKey = meant.key === undefined || meant.key === wanted.key
    const isValue = meant.value === undefined || meant.value === wanted.value
    return isKey && isValue
  }
  return false
}

function coversName(meant: Rule & { kind: 'name' }, wanted: Bind & { kind: 'name' }): boolean {
  const asked = wanted.isWildcard ? ['*', ...wanted.labels] : wanted.labels
  if (!meant.isWildcard) return same(asked, meant.labels)
  // One or more labels before those of the rule; a requested wildcard counts as one.
  for (let before = 1; before <= asked.length; before++) {
    if (same(asked.slice(before), meant.labels)) return true
  }
  return false
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, i) => each === b[i])
}

function matcherSays(acl: readonly string[], wanted: Bind): boolean {
  if (wanted.kind === 'label') return mayBindLabel(acl, wanted.key, wanted.value)
  const name = wanted.labels.join('.')
  if (wanted.kind === 'address') return mayBindAddress(acl, { host: name, port: wanted.port })
  return mayBindName(acl, wanted.isWildcard ? `*.${name}` : name)
}

const acls = fc.array(fc.record({ meant: rule, spelling }), { maxLength: 4 })

test(`${PAIRS} pairs of rules and binds: the matcher agrees with a slow model`, () => {
  let allowed = 0
  let refused = 0
  fc.assert(
    fc.property(acls, bind, (rules, wanted) => {
      const acl = rules.map(({ meant, spelling: how }) => spell(meant, how))
      const expected = rules.length === 0 || rules.some(({ meant }) => allows(meant, wanted))
      assert.equal(matcherSays(acl, wanted), expected, `${JSON.stringify(acl)} and ${JSON.stringify(wanted)}`)
      if (expected) allowed++
      else refused++
    }),
    { numRuns: PAIRS },
  )
  // A test with only one kind of answer would prove nothing.
  assert.ok(allowed > PAIRS / 20 && refused > PAIRS / 20, `${allowed} allowed, ${refused} refused`)
})

test('a rule names a name if it allows that name and does not allow everything', () => {
  const name = bind.filter((each) => each.kind === 'name')
  fc.assert(
    fc.property(acls, name, (rules, wanted) => {
      const acl = rules.map(({ meant, spelling: how }) => spell(meant, how))
      const expected = rules.some(({ meant }) => meant.kind !== 'everything' && allows(meant, wanted))
      const asked = wanted.isWildcard ? ['*', ...wanted.labels] : wanted.labels
      assert.equal(namesIt(acl, asked.join('.')), expected)
    }),
    { numRuns: PAIRS / 4 },
  )
})
