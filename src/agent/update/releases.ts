/** The list of releases, `releases.json`, and which of them to update to. */
import { MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'
import { isMap } from '../../link/options/option-reader.ts'
import type { ReleaseSource } from './release-source.ts'
import { isUpdate, latest } from './version.ts'

/** Largest list, in bytes. */
const INDEX_BYTES = 256 * 1024

/** How long fetching the list may take, in milliseconds: the caller of the update command waits for the answer. */
const INDEX_MS = 7000

export interface Release {
  readonly version: string
  /** File name of the archive, which is beside the list. */
  readonly archive: string
  /** Ed25519 signature of `signedText`. */
  readonly signature: Buffer
}

/** Rejects with a message for the caller of the update command. */
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

/** The bytes that are signed. They include the version, so that an old archive cannot be passed off as a new one. */
export function signedText(version: string, archive: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`postern release ${version}\n`), archive])
}

function releasesOf(value: unknown): Release[] {
  const list = isMap(value) ? value.releases : undefined
  if (!Array.isArray(list)) throw new Error('it has no list called `releases`')
  return list.map((each: unknown) => {
    if (!isMap(each)) throw new Error('a release must be an object')
    const { version, archive, signature } = each
    if (typeof version !== 'string' || typeof archive !== 'string' || typeof signature !== 'string') {
      throw new Error('a release must have `version`, `archive` and `signature`')
    }
    return { version, archive, signature: Buffer.from(signature, 'base64') }
  })
}
