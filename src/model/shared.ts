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
  loginLookUps: {
    what: 'look-ups of logins',
    ...{
      most: 200,
      unit: 'at once at each worker',
      by: 'cookies with our checksum, and all others, which have a quarter',
    },
    atBound: '503 with `Retry-After`',
  },
  bodyMemory: {
    what: 'memory for request bodies that modules read',
    ...{
      most: 64,
      unit: 'MiB of each node (`--body-memory`)',
      by: 'edge, which has half of what others leave, and source, which has a quarter',
    },
    atBound: '503 with `Retry-After`',
  },
  apiHandshakes: {
    what: 'handshakes of API callers (`--api-tls`)',
    ...{ most: 1024, unit: 'at once', by: 'source' },
    atBound: 'the oldest of the source with most is closed',
  },
} as const satisfies Record<string, Shared>

/** The rows of a table in Markdown. */
export function sharedRows(): string[] {
  return Object.values(shared).map(
    ({ what, most, unit, by, atBound }) => `| ${what}, ${most.toLocaleString('en')} ${unit} | ${by} | ${atBound} |`,
  )
}
