import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestBrowser } from '../login/testing/test-browser.ts'
import { logIn, settings, setUp } from './testing/test-stage.ts'
import { compileOidc } from './traffic.ts'

test('only users whose address is on a list are let in', async () => {
  const visit = async (lists: { email_addresses?: string[]; email_domains?: string[] }, claims = {}) => {
    const allow = { email_addresses: [], email_domains: [], ...lists }
    const { browser, provider } = setUp({ allow, scopes: ['profile'] })
    provider.claims = claims
    const { location } = await browser.visit()
    assert.equal(new URL(location).searchParams.get('scope'), 'openid email profile')
    const { code } = await browser.visit({ path: provider.authorize(location) })
    const { status, upstream } = await browser.visit()
    assert.equal(upstream !== undefined, code === undefined)
    return code ?? status
  }
  assert.equal(await visit({ email_addresses: ['ada@example.com'] }), 200)
  assert.equal(await visit({ email_domains: ['example.com'] }), 200)
  assert.equal(await visit({ email_addresses: ['bob@example.com'], email_domains: ['example.com'] }), 200)
  assert.equal(await visit({ email_addresses: ['ada@example.com'] }, { email: 'ADA@example.com' }), 200)
  assert.equal(await visit({ email_domains: ['example.com'] }, { email_verified: undefined }), 200)
  const out: [lists: Parameters<typeof visit>[0], claims?: object][] = [
    [{ email_addresses: ['bob@example.com'] }],
    [{ email_domains: ['com'] }],
    [{ email_domains: ['mail.example.com'] }],
    [{ email_domains: ['example.com'] }, { email: undefined }],
    [{ email_domains: ['example.com'] }, { email: 'ada@example.com', email_verified: false }],
    [{ email_addresses: ['ada@example.com'] }, { email: 'ada@example.com', email_verified: 'no' }],
    [{ email_domains: ['example.com'] }, { email: 'ada@example.com@evil.test' }],
    [{ email_domains: ['example.com'] }, { email: 'example.com' }],
    [{ email_domains: ['example.com'] }, { email: ['ada@example.com'] }],
  ]
  for (const [lists, claims] of out) {
    assert.equal(await visit(lists, claims), 'LOGIN_NOT_ALLOWED', JSON.stringify([lists, claims]))
  }
})

test('changed lists apply at once to users who are logged in, without asking the provider', async () => {
  const at = (domain: string) => ({ allow: { email_addresses: [], email_domains: [domain] } })
  const { browser, provider, tools } = setUp(at('example.com'))
  await logIn(browser, provider)
  const asked = provider.asked.length
  const visit = async (changed: object) => {
    const phases = compileOidc({ ...settings, ...changed }, tools)
    const { status, code } = await new TestBrowser(phases, browser.cookies).visit()
    return code ?? status
  }
  assert.equal(await visit(at('other.test')), 'LOGIN_NOT_ALLOWED')
  assert.equal(await visit(at('other.test')), 'LOGIN_NOT_ALLOWED')
  assert.equal(await visit(at('example.com')), 200)
  assert.equal(provider.asked.length, asked)
})
