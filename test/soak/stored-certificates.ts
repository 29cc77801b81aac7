/**
 * Writes certificates into a database that no server uses, as if the server had got them from an authority long ago:
 * valid, sealed and served like those, and due for renewal. They were never ordered, and all have the same key.
 */
import { generateKeyPairSync } from 'node:crypto'
import { resourceAt, sealFields } from '../../src/control-plane/records/sealed-fields.ts'
import { openSealer } from '../../src/control-plane/records/sealing.ts'
import { issuedCertificate, tlsCertificates } from '../../src/control-plane/resources/tls-certificates.ts'
import { nameStage } from '../../src/control-plane/store/certificate-reader.ts'
import { openStore } from '../../src/control-plane/store/store.ts'
import { timestamp } from '../../src/lib/clock.ts'
import { IdSource } from '../../src/lib/ids.ts'
import { createAuthority } from '../../src/lib/x509/certificate-authority.ts'
import { leafIssuer } from '../support/issue-leaf.ts'

const DAY_MS = 86_400_000

/** Their lifetime and age, in milliseconds: past the time for renewal, and not close to their end. */
const LIFE_MS = 90 * DAY_MS
const AGE_MS = 65 * DAY_MS

/** How many names are written in one transaction. */
const TOGETHER = 500

export async function storeCertificates({
  databaseUrl,
  keyFile,
  names,
}: {
  readonly databaseUrl: string
  readonly keyFile: string
  readonly names: readonly string[]
}): Promise<void> {
  const store = await openStore(databaseUrl)
  try {
    const sealer = await openSealer(store, keyFile)
    const ids = new IdSource({ now: Date.now })
    const issue = issuer()
    const { kind, secrets, prefix } = tlsCertificates
    const issuedAt = timestamp(Date.now() - AGE_MS)
    for (let first = 0; first < names.length; first += TOGETHER) {
      const some = names.slice(first, first + TOGETHER)
      await store.write(async (writer) => {
        await writer.certificates.manage(some)
        for (const name of some) {
          const id = ids.next(prefix)
          const fields = issuedCertificate(issue(name), { issued_at: issuedAt, issued_for: name })
          const row = { id, kind, parentId: null, ownerId: null, createdAt: issuedAt }
          await writer.insert({ ...row, fields: sealFields(sealer, secrets, fields, resourceAt(id)) })
          writer.changed(kind, id)
          const state = JSON.stringify({ certificateId: id, renewsAt: Date.now() })
          await writer.certificates.keep(name, { stage: nameStage.renewal, dueInMs: 0, orderKey: '', state })
        }
      })
    }
  } finally {
    await store.close()
  }
}

/** Creates a separate authority; returns a function that issues its certificates. */
function issuer(): (name: string) => { cert: string; key: string } {
  const issueLeaf = leafIssuer(createAuthority())
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const publicKey = pair.publicKey.export({ type: 'spki', format: 'der' })
  const notBefore = Math.floor((Date.now() - AGE_MS) / 1000) * 1000
  return (name) => ({ cert: issueLeaf({ name, publicKey, notBefore, notAfter: notBefore + LIFE_MS }).pem, key })
}
