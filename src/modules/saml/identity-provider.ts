/** The identity provider of a route, from metadata in the settings, or from a URL where it is read periodically. */
import { SharedRead } from '../../lib/http/shared-read.ts'
import type { ModuleTools } from '../tools.ts'
import type { SamlSettings } from './form.ts'
import type { IdentityProvider } from './metadata.ts'

/** How long metadata is used before it is read again, in milliseconds. */
const FRESH_MS = 15 * 60_000

/** How long it is used when it cannot be read again, in milliseconds: a withdrawn key must not stay valid for ever. */
const STALE_MS = 24 * 3_600_000

/** The longest metadata that is read, in bytes; the same as for metadata in the settings. */
const MAX_METADATA_BYTES = 256 * 1024

type Tools = Pick<ModuleTools, 'fetch' | 'now' | 'log' | 'owner' | 'samlDocuments'>

/** Exactly one of the two settings is set. Rejects when the metadata cannot be read or used; then nobody is let in. */
export function identityProvider(
  { idp_metadata, idp_metadata_url }: Pick<SamlSettings, 'idp_metadata' | 'idp_metadata_url'>,
  { fetch, now, log, owner, samlDocuments }: Tools,
): () => Promise<IdentityProvider> {
  const text = async (): Promise<string> => {
    if (idp_metadata !== '') return idp_metadata
    const { status, body } = await fetch(idp_metadata_url, { headers: { accept: 'application/samlmetadata+xml, */*' } })
    if (status !== 200) throw new MetadataFault(`the metadata address answered ${status}`)
    if (body.length > MAX_METADATA_BYTES) throw new MetadataFault('the metadata is longer than 256 KiB')
    return body.toString()
  }

  const metadata = new SharedRead(async () => {
    const provider = await samlDocuments.metadata({ owner, source: '' }, await text())
    if ('fault' in provider) throw new MetadataFault(provider.reason)
    return provider
  }, now)

  // Metadata in the settings changes only with the module.
  if (idp_metadata !== '') return () => metadata.value(Number.POSITIVE_INFINITY)
  const onFault = () => log.debug({ url: originOf(idp_metadata_url) }, 'metadata cannot be read again')
  return () => metadata.value(FRESH_MS, STALE_MS, onFault)
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
