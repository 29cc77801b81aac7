/** The identity provider of a route, from metadata in the settings, or from a URL where it is read periodically. */
import { randomUUID } from 'node:crypto'
import type { ModuleTools } from '../tools.ts'
import type { SamlSettings } from './form.ts'
import type { IdentityProvider } from './metadata.ts'

/** How long metadata is used before it is read again, in milliseconds. */
const FRESH_MS = 15 * 60_000

/** How long it is used when it cannot be read again, in milliseconds: a withdrawn key must not stay valid for ever. */
const STALE_MS = 24 * 3_600_000

/** How long a failed request is not repeated, in milliseconds, since visitors wait for its answer. */
const FAILED_MS = 2000

/** The longest metadata that is read, in bytes; the same as for metadata in the settings. */
const MAX_METADATA_BYTES = 256 * 1024

type Tools = Pick<ModuleTools, 'fetch' | 'now' | 'log' | 'samlDocuments'>

/** Exactly one of the two settings is set. Rejects when the metadata cannot be read or used; then nobody is let in. */
export function identityProvider(
  { idp_metadata, idp_metadata_url }: Pick<SamlSettings, 'idp_metadata' | 'idp_metadata_url'>,
  { fetch, now, log, samlDocuments }: Tools,
): () => Promise<IdentityProvider> {
  const owner = randomUUID()
  let known: { readonly provider: IdentityProvider; readonly readAt: number } | undefined
  let reading: Promise<IdentityProvider> | undefined
  let failed: { readonly error: unknown; readonly at: number } | undefined

  const text = async (): Promise<string> => {
    if (idp_metadata !== '') return idp_metadata
    const { status, body } = await fetch(idp_metadata_url, { headers: { accept: 'application/samlmetadata+xml, */*' } })
    if (status !== 200) throw new MetadataFault(`the metadata address answered ${status}`)
    if (body.length > MAX_METADATA_BYTES) throw new MetadataFault('the metadata is longer than 256 KiB')
    return body.toString()
  }

  const read = async (): Promise<IdentityProvider> => {
    try {
      const provider = await samlDocuments.metadata(owner, await text())
      if ('fault' in provider) throw new MetadataFault(provider.reason)
      known = { provider, readAt: now() }
      failed = undefined
      return provider
    } catch (error) {
      failed = { error, at: now() }
      throw error
    } finally {
      reading = undefined
    }
  }

  const readOnce = (): Promise<IdentityProvider> => {
    if (failed && now() - failed.at < FAILED_MS) return Promise.reject(failed.error)
    reading ??= read()
    return reading
  }

  return () => {
    if (!known) return readOnce()
    // Metadata in the settings changes only with the module.
    if (idp_metadata !== '') return Promise.resolve(known.provider)
    const age = now() - known.readAt
    if (age >= STALE_MS) return readOnce()
    if (age >= FRESH_MS) {
      readOnce().catch(() => log.debug({ url: originOf(idp_metadata_url) }, 'metadata cannot be read again'))
    }
    return Promise.resolve(known.provider)
  }
}

/** Its message can be logged. */
export class MetadataFault extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MetadataFault'
  }
}

/** The URL without path and query, which may hold a secret. */
function originOf(url: string): string {
  return URL.parse(url)?.origin ?? ''
}
