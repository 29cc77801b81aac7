/** The list of releases, `releases.json`, and which of them to go over to. */
import { MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'
import type { ReleaseSource } from './release-source.ts'
import { isUpdate, latest } from './version.ts'

/** Largest list, in bytes. */
const INDEX_BYTES = 256 * 1024

/** How long the list may take to come, in milliseconds: who told us to update waits for the answer. */
const INDEX_MS = 7000

export interface Release {
  readonly version: string
  /** Name of the archive, beside the list. */
  readonly archive: string
  /** Ed25519, over `signedText`. */
  readonly signature: Buffer
}

/** Rejects with words for whoever asked. */
export async function readReleases(source: ReleaseSource): Promise<Release[]> {
  try {
    const bytes = await source.read('releases.json', INDEX_BYTES, { timeoutMs: INDEX_MS })
    return releasesOf(parseJson(bytes, { maxDepth: 8, maxValues: MAX_JSON_VALUES }))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`the list of releases cannot be read: ${why}`, { cause })
  }
}

/** The newest update of `current`, or `wanted` when it is one; undefined when there is none. */
export function chooseRelease(
  releases: readonly Release[],
  { current, wanted = '' }: { current: string; wanted?: string },
): Release | undefined {
  const updates = releases.filter(({ version }) => isUpdate(version, current) && (wanted === '' || version === wanted))
  const newest = latest(updates.map(({ version }) => version))
  return updates.find(({ version }) => version === newest)
}

/** What is signed of a release: its version too, so that an old archive cannot be passed off as a new one. */
export function signedText(version: string, archive: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`postern release ${version}\n`), archive])
}

function releasesOf(value: unknown): Release[] {
  const list = isObject(value) ? value.releases : undefined
  if (!Array.isArray(list)) throw new Error('it has no list called `releases`')
  return list.map((each: unknown) => {
    if (!isObject(each)) throw new Error('a release must be an object')
    const { version, archive, signature } = each
    if (typeof version !== 'string' || typeof archive !== 'string' || typeof signature !== 'string') {
      throw new Error('a release must have `version`, `archive` and `signature`')
    }
    return { version, archive, signature: Buffer.from(signature, 'base64') }
  })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
