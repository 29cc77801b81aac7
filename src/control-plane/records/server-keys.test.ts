import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { describe, test } from 'node:test'
import { databaseContents } from '../../../test/support/database-contents.ts'
import { eachStore } from '../../../test/support/databases.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { openStore, type Store } from '../store/store.ts'
import { resealAll } from './reseal-database.ts'
import { KEY_ID } from './sealing.ts'
import { requestKeyOf } from './server-keys.ts'

const sealer = new Sealer(Buffer.alloc(32, 1))

async function open(url: string, context: { after(close: () => unknown): void }): Promise<Store> {
  const store = await openStore(url)
  context.after(() => store.close())
  await store.write((writer) => writer.setMeta(KEY_ID, sealer.keyId))
  return store
}

describe('the key that signs requests', () => {
  eachStore((kind) => {
    test('is made once, whoever asks first, and matches its certificate', async (t) => {
      const url = await kind.url()
      const [one, two] = [await open(url, t), await open(url, t)]
      const ask = requestKeyOf(one, sealer, Date.now)
      const keys = await Promise.all([ask(), ask(), requestKeyOf(two, sealer, Date.now)()])
      assert.equal(new Set(keys.map(({ key }) => key.reveal())).size, 1)
      assert.equal(keys[0], keys[1])
      const [{ certificate, key }] = keys
      const parsed = new X509Certificate(certificate)
      assert.ok(parsed.verify(parsed.publicKey))
      assert.equal(parsed.publicKey.asymmetricKeyDetails?.modulusLength, 2048)
      const later = await requestKeyOf(one, sealer, Date.now)()
      assert.deepEqual([later.certificate, later.key.reveal()], [certificate, key.reveal()])
    })

    test('is sealed at rest, and sealed again by a rotation', async (t) => {
      const url = await kind.url()
      const store = await open(url, t)
      const { certificate, key } = await requestKeyOf(store, sealer, Date.now)()
      const stored = await databaseContents(url)
      assert.ok(stored.includes('saml_request_key'))
      assert.ok(!stored.includes('PRIVATE KEY'))
      const next = new Sealer(Buffer.alloc(32, 2))
      await store.write((writer) =>
        resealAll(writer, (sealed, context) => next.seal(sealer.open(sealed, context), context)),
      )
      const after = await requestKeyOf(store, next, Date.now)()
      assert.deepEqual([after.certificate, after.key.reveal()], [certificate, key.reveal()])
      await assert.rejects(requestKeyOf(store, sealer, Date.now)())
    })

    test('that could not be read is asked for again', async (t) => {
      const store = await open(await kind.url(), t)
      let isAway = true
      const flaky = {
        read: (...given: Parameters<Store['read']>) =>
          isAway ? Promise.reject(new Error('away')) : store.read(...given),
        write: (...given: Parameters<Store['write']>) => store.write(...given),
      } as Store // only this method is used
      const ask = requestKeyOf(flaky, sealer, Date.now)
      await assert.rejects(ask(), /away/)
      isAway = false
      assert.match((await ask()).certificate, /CERTIFICATE/)
    })
  })
})
