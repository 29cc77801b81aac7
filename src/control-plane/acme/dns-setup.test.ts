import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dnsRecordsBy } from './open-certificates.ts'

const tools = { env: {}, now: Date.now }
const none = { dnsCommand: null, dnsServer: null, dnsKey: null }
const dnsServer = { host: '127.0.0.1', port: 53 }

test('without a server or a program no records can be set', () => {
  assert.equal(dnsRecordsBy(none, tools), undefined)
})

test('a server without its key is reported, even if there is a program', async () => {
  const records = dnsRecordsBy({ ...none, dnsServer, dnsCommand: '/nowhere' }, tools)
  await assert.rejects(records?.present('r', 'v') ?? Promise.resolve(), /needs its key in `POSTERN_ACME_DNS_KEY`/)
})
