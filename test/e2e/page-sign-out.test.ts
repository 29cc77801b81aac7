/** Signing out of the dashboard ends the session at every node, until it would have ended. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { head, type RawAnswer, sendRaw } from '../support/raw-http.ts'

/** The same for all servers, as behind one name. */
const API_URL = 'http://api.example.com'
const flags = { 'api-url': API_URL, 'drain-timeout': '1s' }

eachStore((store) => {
  const ask = (
    { url }: Platform,
    method: string,
    path: string,
    { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<RawAnswer> => {
    const all = {
      ...{ Host: 'api.example.com', Origin: API_URL, 'Sec-Fetch-Site': 'same-origin', 'Service-Version': '2' },
      ...{ 'Content-Type': 'application/json', 'Content-Length': String(body.length), Connection: 'close', ...headers },
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
    return sendRaw(url, `${head([`${method} ${path} HTTP/1.1`, ...lines])}${body}`)
  }

  const signIn = async (platform: Platform): Promise<Record<string, string>> => {
    const body = JSON.stringify({ api_key: platform.apiKey })
    const answer = await ask(platform, 'POST', '/page/session', { body })
    assert.equal(answer.status, 200, answer.text)
    const [cookie = ''] = answer.headers.get('set-cookie') ?? []
    return { Cookie: cookie.split(';')[0] ?? '', 'Postern-Page': answer.body.secret }
  }

  const status = async (platform: Platform, headers: Record<string, string>): Promise<number> =>
    (await ask(platform, 'GET', '/api_keys', { headers })).status

  test('after a restart', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'postern-sign-out-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const options = { dataDir, databaseUrl: await store.url(), flags }
    const before = await startPlatform(options)
    const [left, kept] = [await signIn(before), await signIn(before)]
    assert.equal((await ask(before, 'DELETE', '/page/session', { headers: left })).status, 204)
    await before.stop()
    const again = await startPlatform(options)
    t.after(() => again.stop())
    assert.deepEqual([await status(again, left), await status(again, kept)], [401, 200])
  })

  if (store.name !== 'postgres') return
  test('at another node, at once', async (t) => {
    const databaseUrl = await store.url()
    const here = await startPlatform({ databaseUrl, flags })
    t.after(() => here.stop())
    const there = await startPlatform({ databaseUrl, flags: { ...flags, 'key-file': `${here.dataDir}/secret.key` } })
    t.after(() => there.stop())
    const [left, kept] = [await signIn(here), await signIn(here)]
    assert.deepEqual([await status(there, left), await status(there, kept)], [200, 200])
    assert.equal((await ask(here, 'DELETE', '/page/session', { headers: left })).status, 204)
    assert.deepEqual([await status(there, left), await status(there, kept)], [401, 200])
    assert.deepEqual((await ask(there, 'GET', '/page/session', { headers: left })).body, { session: null })
  })
})
