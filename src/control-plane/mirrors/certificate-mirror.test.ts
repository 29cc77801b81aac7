import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { resourceAt, sealFields } from '../records/sealed-fields.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { openStore, type Store } from '../store/store.ts'
import type { CertificatesByName } from './certificate-choice.ts'
import { mirrorCertificates } from './certificate-mirror.ts'

/** Counts what is unsealed, the most expensive step. */
class CountingSealer extends Sealer {
  opened = 0

  override open(sealed: string, context: string): string {
    this.opened++
    return super.open(sealed, context)
  }
}

const key = randomBytes(32)
const CERTIFICATE = tlsCertificates.kind
const DOMAIN = reservedDomains.kind

describe('the certificates that are served', () => {
  eachStore((databases) => {
    let store: Store
    let sealer: CountingSealer
    let live: ReturnType<typeof mirrorCertificates>
    let served: CertificatesByName
    let reported: number
    const lines: string[] = []
    const log = createLog({ level: 'error', format: 'json', destination: { write: (line) => lines.push(line) } })
    let made = 0

    before(async () => {
      store = await openStore(await databases.url())
    })
    after(() => store.close())
    beforeEach(async () => {
      lines.length = 0
      sealer = new CountingSealer(key)
      reported = 0
      const replace = (all: CertificatesByName) => {
        served = all
        reported++
      }
      live = mirrorCertificates({ store, sealer, replace, log })
      await live.load()
      sealer.opened = 0
      reported = 0
    })

    const nextId = (prefix: string) => `${prefix}${String(made + 1).padStart(4, '0')}`
    const insert = async (kind: string, prefix: string, fields: Readonly<Record<string, unknown>>) => {
      const id = nextId(prefix)
      made++
      const row = { id, kind, parentId: null, ownerId: null, createdAt: '2026-01-01T00:00:00Z' }
      await store.write((writer) => writer.insert({ ...row, fields }))
      return id
    }
    const fieldsFor = (id: string, names: readonly string[], under: Sealer = sealer) => {
      const fields = {
        certificate_pem: `of ${names.join()}`,
        private_key_pem: 'key',
        not_after: '2027-01-01T00:00:00Z',
        subject_alternative_names: { dns_names: names, ips: [] },
      }
      return sealFields(under, tlsCertificates.secrets, fields, resourceAt(id))
    }
    const upload = (names: readonly string[], under?: Sealer) =>
      insert(CERTIFICATE, 'cert_', fieldsFor(nextId('cert_'), names, under))
    const apply = (kind: string, ...ids: string[]) => live.apply(ids.map((id, revision) => ({ id, kind, revision })))
    const idOf = (name: string) => served.get(name)?.id

    test('are opened once, and a change opens the one that changed', async () => {
      const ids: string[] = []
      for (let i = 0; i < 20; i++) ids.push(await upload([`n${i}.test`]))
      await live.load()
      const all = sealer.opened
      assert.ok(all >= ids.length)
      const before = served.get('n0.test')
      assert.deepEqual([before?.id, before?.key], [ids[0], 'key'])

      sealer.opened = 0
      const another = await upload(['more.test'])
      await apply(CERTIFICATE, another)
      assert.equal(sealer.opened, 1)
      assert.deepEqual([idOf('more.test'), idOf('n19.test')], [another, ids[19]])
      assert.equal(served.get('n0.test'), before, 'an unchanged certificate is the same object, and is not read again')

      await store.write((writer) => writer.remove(ids[1] ?? ''))
      await apply(CERTIFICATE, ids[1] ?? '')
      await apply(DOMAIN, await insert(DOMAIN, 'rd_', { domain: 'chosen.test', certificate_id: ids[2] }))
      assert.equal(sealer.opened, 1, 'neither a removal nor a reserved domain unseals anything')
      assert.deepEqual([idOf('n1.test'), idOf('chosen.test')], [undefined, ids[2]])
    })

    test('are reported once for all that changed together, and not for unrelated changes', async () => {
      const id = await upload(['a.once.test'])
      const other = await upload(['b.once.test'])
      await apply(CERTIFICATE, id, other, id)
      assert.deepEqual([sealer.opened, reported], [2, 1])
      await apply('ip_policy', 'ipp_1')
      assert.equal(reported, 1)
    })

    test('for one name are the newest, unless a reserved domain names another', async () => {
      const older = await upload(['both.test'])
      const newer = await upload(['both.test'])
      await apply(CERTIFICATE, newer)
      await apply(CERTIFICATE, older)
      assert.equal(idOf('both.test'), newer)
      const domain = await insert(DOMAIN, 'rd_', { domain: 'both.test', certificate_id: older })
      await apply(DOMAIN, domain)
      assert.equal(idOf('both.test'), older)
      await store.write((writer) => writer.replaceFields(domain, { domain: 'both.test' }))
      await apply(DOMAIN, domain)
      assert.equal(idOf('both.test'), newer, 'a domain without a certificate chooses none')
    })

    test('do not include one that cannot be unsealed, which is logged once and served when it is repaired', async () => {
      const id = await upload(['shut.test'], new Sealer(randomBytes(32)))
      await apply(CERTIFICATE, id)
      const good = await upload(['good.test'])
      await apply(CERTIFICATE, good)
      assert.deepEqual([idOf('shut.test'), idOf('good.test')], [undefined, good])
      assert.equal(lines.filter((line) => line.includes(id)).length, 1)
      await store.write((writer) => writer.replaceFields(id, fieldsFor(id, ['shut.test'])))
      await apply(CERTIFICATE, id)
      assert.equal(idOf('shut.test'), id)
    })
  })
})
