import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestBrowser } from '../login/testing/test-browser.ts'
import { redirectPayloads } from '../login/testing/test-payloads.ts'
import { logIn, setUp } from './testing/test-stage.ts'

/** Every text that differs from `text` in one bit. */
function* flipped(text: string): Generator<string> {
  for (let i = 0; i < text.length; i++) {
    for (let bit = 0; bit < 8; bit++) {
      yield text.slice(0, i) + String.fromCharCode(text.charCodeAt(i) ^ (1 << bit)) + text.slice(i + 1)
    }
  }
}

test('a session cookie with any one bit changed lets nobody in', async () => {
  const { browser, provider, phases } = setUp()
  await logIn(browser, provider)
  const session = browser.cookies.get('__Host-postern.session') ?? ''
  let tried = 0
  for (const other of flipped(session)) {
    const { status } = await new TestBrowser(phases).visit({ headers: { cookie: `__Host-postern.session=${other}` } })
    assert.equal(status, 302, JSON.stringify(other))
    tried++
  }
  assert.equal(tried, 43 * 8)
  assert.equal((await browser.visit()).status, 200)
})

test('the cookie of an attempt with any one bit changed ends no login', async () => {
  const { browser, provider, phases } = setUp()
  const { location } = await browser.visit()
  const path = provider.authorize(location)
  const [[name = '', value = ''] = []] = browser.cookies
  assert.ok(value.length > 100)
  for (const other of flipped(value)) {
    const { code } = await new TestBrowser(phases, new Map([[name, other]])).visit({ path })
    assert.equal(code, 'LOGIN_OTHER_BROWSER', JSON.stringify(other))
  }
  for (const other of flipped(name.slice('__Host-postern.nonce.'.length))) {
    const { code } = await new TestBrowser(phases, new Map([[`__Host-postern.nonce.${other}`, value]])).visit({ path })
    assert.equal(code, 'LOGIN_OTHER_BROWSER', JSON.stringify(other))
  }
  assert.equal((await browser.visit({ path })).location, '/')
})

test('a state with any one bit changed ends no login', async () => {
  const { browser, provider, phases } = setUp()
  const { location } = await browser.visit()
  const path = provider.authorize(location)
  const state = new URL(location).searchParams.get('state') ?? ''
  const known = new Map(browser.cookies)
  for (const other of flipped(state)) {
    const { code } = await new TestBrowser(phases, known).visit({
      path: `/oauth2/callback?code=1&state=${encodeURIComponent(other)}`,
    })
    assert.equal(code, 'LOGIN_STATE_INVALID', JSON.stringify(other))
  }
  assert.equal((await browser.visit({ path })).location, '/')
})

test('cookies and states that were cut, doubled or swapped end no login', async () => {
  const { browser, provider, phases } = setUp()
  const [first, second] = [await browser.visit(), await browser.visit()]
  const [[nameA = '', valueA = ''] = [], [nameB = '', valueB = ''] = []] = browser.cookies
  const path = provider.authorize(first.location)
  const state = new URL(first.location).searchParams.get('state') ?? ''
  const cookies: Record<string, string>[] = [
    { [nameA]: valueB },
    { [nameB]: valueA },
    { [nameB]: valueB },
    { [nameA]: '' },
    { [nameA]: valueA.slice(0, -1) },
    { [nameA]: `${valueA}A` },
    { [nameA]: valueA + valueA },
    { [nameA]: `"${valueA}"` },
    { [nameA]: state.split('.')[1] ?? '' },
  ]
  for (const given of cookies) {
    const { code } = await new TestBrowser(phases, new Map(Object.entries(given))).visit({ path })
    assert.equal(code, 'LOGIN_OTHER_BROWSER')
  }
  const twice = { cookie: `${nameA}=${valueA}; ${nameA}=${valueA}` }
  assert.equal((await new TestBrowser(phases).visit({ path, headers: twice })).code, 'LOGIN_OTHER_BROWSER')
  const route = state.split('.')[0] ?? ''
  for (const other of [`${state}A`, state.slice(0, -1), state + state, route, `${route}.`, `${route}.${valueA}`]) {
    const { code } = await browser.visit({ path: `/oauth2/callback?code=1&state=${encodeURIComponent(other)}` })
    assert.equal(code, 'LOGIN_STATE_INVALID')
  }
  assert.equal((await browser.visit({ path: `${path}&state=x` })).code, 'LOGIN_STATE_MISSING')
  assert.equal((await browser.visit({ path: provider.authorize(second.location) })).location, '/')
})

test('no payload leads a visitor to another host after a login', async () => {
  const { browser, provider } = setUp()
  const host = 'https://app.example.com'
  const payloads = redirectPayloads()
  assert.ok(payloads.length >= 600)
  for (const payload of payloads) {
    const query = new URLSearchParams({ to: payload }).toString()
    const { location } = await browser.visit({ path: `/postern/login?${query}` })
    const back = await browser.visit({ path: provider.authorize(location) })
    assert.equal(new URL(back.location, host).origin, host, JSON.stringify(payload))
    assert.match(back.location, /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/)
  }
})

test('no path that a visitor asks for leads to another host after a login', async () => {
  const { browser, provider } = setUp()
  for (const payload of redirectPayloads()) {
    browser.cookies.clear()
    const { location } = await browser.visit({ path: payload.replaceAll('?', '') })
    const back = await browser.visit({ path: provider.authorize(location) })
    assert.equal(new URL(back.location, 'https://app.example.com').origin, 'https://app.example.com', payload)
  }
})
