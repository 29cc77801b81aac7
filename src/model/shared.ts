/** What many share (D104): how much there is, by whom it is shared, and what happens at the bound; docs/operate.md lists it. */
import { spareDescriptors } from '../lib/files/descriptors.ts'

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
  visitorConnections: {
    what: 'connections of visitors',
    ...{ most: spareDescriptors.visitors, unit: 'fewer than files may be open in each worker', by: 'source' },
    atBound: 'the longest idle connection of the source that has most is closed for a new one',
  },
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
  bodyMemory: {
    what: 'memory for request bodies that modules read',
    ...{
      most: 64,
      unit: 'MiB of each node (`--body-memory`)',
      by: 'edge, which has half of what others leave, and source, which has a quarter',
    },
    atBound: '503 with `Retry-After`',
  },
  heldConnections: {
    what: 'connections that wait until their edge is found or compiled',
    ...{ most: 1024, unit: 'at once at each worker', by: 'source' },
    atBound: 'the oldest of the source with most is closed',
  },
  earlyConnections: {
    what: 'connections that come before a starting server has loaded its edges',
    ...{ most: 4096, unit: 'at once at each worker', by: 'source' },
    atBound: 'the oldest of the source with most is closed',
  },
  apiHandshakes: {
    what: 'handshakes of API callers (`--api-tls`)',
    ...{ most: 1024, unit: 'at once', by: 'source' },
    atBound: 'the oldest of the source with most is closed',
  },
  largeAnswers: {
    what: 'answers of the API of more than 1 MiB, with kept bodies, or with tunnels of groups, until they are read',
    ...{ most: 8, unit: 'at once at each node', by: 'owner of the key, one each' },
    atBound: 'waits up to a minute, then 503 with `Retry-After`',
  },
  eventStreams: {
    what: 'streams of `GET /exchanges/stream`',
    ...{ most: 200, unit: 'at once at each node', by: 'owner of the key' },
    atBound: 'the oldest stream of the owner with most ends, or 503 with `Retry-After` for an owner with a quarter',
  },
  replays: {
    what: 'replays of exchanges',
    ...{ most: 16, unit: 'at once from the API of each node', by: 'owner of the key' },
    atBound: 'waits up to 15 s, then 503 with `Retry-After`',
  },
  nameProofs: {
    what: 'look-ups of the DNS records that prove names (`--verify-domains`)',
    ...{ most: 32, unit: 'at once at each node', by: 'owner of the key or credential' },
    atBound: 'waits up to 5 s, then refused unless the name was proven in the last 30 days',
  },
  captures: {
    what: 'captures',
    ...{ most: 100, unit: 'at once, on all nodes together', by: 'owner of the key, ten each' },
    atBound: '409: a capture ends by its time or its owner, and for nobody else',
  },
} as const satisfies Record<string, Shared>

/** The rows of a table in Markdown. */
export function sharedRows(): string[] {
  return Object.values(shared).map(
    ({ what, most, unit, by, atBound }) => `| ${what}, ${most.toLocaleString('en')} ${unit} | ${by} | ${atBound} |`,
  )
}
