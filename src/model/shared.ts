/** What many share (D104): how much there is, by whom it is shared, and what happens at the bound; docs/operate.md lists it. */

interface Shared {
  readonly what: string
  readonly most: number
  /** Of what the number counts, and where. */
  readonly unit: string
  readonly by: string
  readonly atBound: string
}

/** Each row is attacked by a test of its name in test/e2e/shares/. */
export const shared = {
  nameLookUps: {
    what: 'look-ups of names at other nodes',
    ...{ most: 500, unit: 'at once at each worker', by: 'source' },
    atBound: 'waits up to 2 s, then 503 with `Retry-After`',
  },
  rateLimitCounters: {
    what: 'counters of `rate-limit`',
    ...{ most: 100_000, unit: 'at each worker', by: 'edge or endpoint' },
    atBound: 'further keys of that edge are counted together',
  },
  binds: {
    what: 'binds',
    ...{
      most: 64,
      unit: 'under way at each worker, four times as many in a cluster',
      by: 'credential, of which two never wait',
    },
    atBound: 'waits up to 15 s, then error 802',
  },
  samlDocuments: {
    what: 'SAML documents',
    ...{ most: 256, unit: 'that wait at each worker', by: 'owner of the edge, and then source' },
    atBound: 'the oldest of the largest source gets 503',
  },
  longChecks: {
    what: 'documents that take long to check',
    ...{ most: 256, unit: 'that wait at each node', by: 'user or bot' },
    atBound: 'the oldest gets 429 with `Retry-After`, a bind error 802',
  },
  keyMaking: {
    what: 'SSH keys to be made',
    ...{ most: 32, unit: 'that wait at each node', by: 'user or bot' },
    atBound: 'the oldest gets 429 with `Retry-After`',
  },
  storedLogins: {
    what: 'logins of visitors',
    ...{ most: 250_000, unit: 'in the database', by: 'edge or endpoint' },
    atBound: 'the longest absent of the largest log in again',
  },
  loginLookUps: {
    what: 'look-ups of logins',
    ...{
      most: 200,
      unit: 'at once at each worker',
      by: 'cookies with our checksum, and all others, which have a quarter',
    },
    atBound: '503 with `Retry-After`',
  },
} as const satisfies Record<string, Shared>

/** The rows of a table in Markdown. */
export function sharedRows(): string[] {
  return Object.values(shared).map(
    ({ what, most, unit, by, atBound }) => `| ${what}, ${most.toLocaleString('en')} ${unit} | ${by} | ${atBound} |`,
  )
}
