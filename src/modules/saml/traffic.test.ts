import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { WorkRefused, WorkTooHeavy } from '../../lib/threads/worker-pool.ts'
import { Refusal } from '../../model/errors.ts'
import { MemorySessions } from '../login/memory-sessions.ts'
import { type Page, TestBrowser } from '../login/testing/test-browser.ts'
import { testTools } from '../testing/test-tools.ts'
import type { ModuleTools } from '../tools.ts'
import { ask, base64, deliver, HOST, idp, logIn, metadataOf, post, ROUTE, setUp } from './testing/test-stage.ts'

const ACS = `https://${HOST}${ROUTE}/acs`

test('a stranger is sent to the identity provider with a signed request', async () => {
  const stage = setUp()
  const { location, status, headers } = await stage.browser.visit({ path: '/page?x=1' })
  assert.equal(status, 302)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.ok(location.startsWith('https://idp.example.com/sso?tenant=1&'))
  // samlify verifies the signature by our metadata.
  const asked = await idp.read(location, await metadataOf(stage))
  assert.equal(asked.acs, ACS)
  assert.equal(asked.entityId, `https://${HOST}${ROUTE}/metadata`)
  assert.match(asked.requestId, /^_[0-9a-f]{40}$/)
  assert.match(asked.xml, /nameid-format:persistent/)
  assert.doesNotMatch(asked.xml, /ForceAuthn/)
  await assert.rejects(idp.read(location, await metadataOf(setUp({}, { requestKey: async () => idp.key }))))
})

test('after a login the visitor gets the requested page, and the service learns who it is', async () => {
  for (const signs of ['assertion', 'response', 'both'] as const) {
    const stage = setUp()
    const end = await logIn(stage, {}, { visit: { path: '/page?x=1' }, signing: { signs } })
    assert.deepEqual([end.status, end.location], [302, '/page?x=1'], signs)
    const page = await stage.browser.visit({ path: '/page?x=1' })
    assert.equal(page.status, 200)
    assert.equal(page.upstream?.get('postern-auth-user-id'), 'ada')
    assert.equal(page.upstream?.get('postern-auth-user-name'), 'Ada Lovelace')
    assert.equal(page.upstream?.get('postern-auth-user-email'), 'ada@example.com')
    assert.equal(page.upstream?.get('cookie'), undefined)
    assert.equal(page.ctx.found.get('saml.subject'), 'ada')
  }
})

test('the POST answers with a 303 that holds only sealed text, and no script', async () => {
  const stage = setUp()
  const asked = await ask(stage)
  const sent = await post(stage.browser, {
    SAMLResponse: Buffer.from(await idp.answer(asked)).toString('base64'),
    RelayState: asked.relayState,
  })
  assert.equal(sent.status, 303)
  assert.ok(sent.location.startsWith(`${ROUTE}/acs?state=`))
  assert.doesNotMatch(sent.location, /ada|Lovelace/)
  assert.equal(sent.headers.get('referrer-policy'), 'no-referrer')
  assert.deepEqual(sent.headers.all('set-cookie'), [])
})

test('a login that began in another browser is refused', async () => {
  const stage = setUp()
  const asked = await ask(stage)
  const victim = new TestBrowser(stage.phases)
  const page = await deliver(victim, await idp.answer(asked), asked.relayState)
  assert.equal(page.code, 'LOGIN_OTHER_BROWSER')
  assert.equal((await victim.visit()).status, 302)
})

test('a sealed answer works for its own attempt only, once, and for a short time', async () => {
  const stage = setUp()
  const [first, second] = [await ask(stage), await ask(stage)]
  const sent = await post(stage.browser, {
    SAMLResponse: Buffer.from(await idp.answer(first)).toString('base64'),
    RelayState: first.relayState,
  })
  const cookies = new Map(stage.browser.cookies)
  const other = sent.location.replace(encodeURIComponent(first.relayState), encodeURIComponent(second.relayState))
  assert.notEqual(other, sent.location)
  assert.equal((await stage.browser.visit({ path: other })).code, 'LOGIN_STATE_INVALID')
  assert.equal((await stage.browser.visit({ path: sent.location })).status, 302)
  assert.equal(
    (await new TestBrowser(stage.phases, cookies).visit({ path: sent.location })).code,
    'LOGIN_ANSWER_REPEATED',
  )
  stage.browser.cookies.clear()
  const third = await ask(stage)
  const late = await post(stage.browser, {
    SAMLResponse: Buffer.from(await idp.answer(third)).toString('base64'),
    RelayState: third.relayState,
  })
  stage.later(121_000)
  assert.equal((await stage.browser.visit({ path: late.location })).code, 'LOGIN_STATE_EXPIRED')
})

test('an attempt that took too long, or is of another host, is refused', async () => {
  const stage = setUp()
  const asked = await ask(stage)
  const xml = await idp.answer(asked)
  assert.equal(
    (await deliver(stage.browser, xml, asked.relayState, { host: 'b.example.com' })).code,
    'LOGIN_WRONG_HOST',
  )
  stage.later(15 * 60_000 + 1)
  assert.equal((await deliver(stage.browser, xml, asked.relayState)).code, 'LOGIN_STATE_EXPIRED')
})

test('each name of an edge is a separate service provider', async () => {
  const stage = setUp()
  const asked = await ask(stage, { host: 'b.example.com' })
  assert.equal(asked.entityId, `https://b.example.com${ROUTE}/metadata`)
  const wrong = await idp.answer(asked, { audience: `https://${HOST}${ROUTE}/metadata` })
  assert.equal(
    (await deliver(stage.browser, wrong, asked.relayState, { host: 'b.example.com' })).code,
    'LOGIN_ANSWER_ELSEWHERE',
  )
  assert.equal((await logIn(stage, {}, { visit: { host: 'b.example.com' } })).status, 302)
})

test('demands credentials at every login where configured, and checks that they were given', async () => {
  const stage = setUp({ force_authn: true })
  assert.match((await ask(stage)).xml, /ForceAuthn="true"/)
  assert.equal((await logIn(stage, { authnInstant: -3600 })).code, 'LOGIN_ANSWER_OUTDATED')
  assert.equal((await logIn(stage, { authnInstant: -30 })).status, 302)
  const easy = setUp()
  assert.equal((await logIn(easy, { authnInstant: -3600 })).status, 302)
  assert.match((await ask(easy, { path: '/postern/login' })).xml, /ForceAuthn="true"/)
})

test('only users of an authorized group are let in, and all must log in again when the groups change', async () => {
  const stage = setUp({ authorized_groups: ['Engineers', 'admins'] })
  assert.equal((await logIn(stage, { attributes: { groups: ['engineers'] } })).code, 'LOGIN_NOT_ALLOWED')
  assert.equal((await logIn(stage, { attributes: {} })).code, 'LOGIN_NOT_ALLOWED')
  for (const name of ['groups', 'memberOf', 'http://schemas.microsoft.com/ws/2008/06/identity/claims/groups']) {
    stage.browser.cookies.clear()
    assert.equal((await logIn(stage, { attributes: { [name]: ['users', 'admins'] } })).status, 302, name)
  }
  assert.equal((await stage.browser.visit()).status, 200)
  const changed = setUp({ authorized_groups: ['users'] }, { sessions: stage.tools.sessions })
  const again = new TestBrowser(changed.phases, stage.browser.cookies)
  assert.equal((await again.visit()).status, 302)
})

test('a login that began at the identity provider must be allowed, and end at a page of this host', async () => {
  const unsolicited = { requestId: '', relayState: '', acs: ACS, entityId: `https://${HOST}${ROUTE}/metadata` }
  const answer = () => idp.answer(unsolicited, { inResponseTo: undefined })
  const closed = setUp()
  assert.equal((await deliver(closed.browser, await answer(), '/page')).code, 'LOGIN_STATE_INVALID')
  assert.equal((await deliver(closed.browser, await answer(), '')).code, 'LOGIN_STATE_MISSING')
  const stage = setUp({ allow_idp_initiated: true })
  for (const relayState of [
    '',
    'https://evil.example.com/',
    '//evil.example.com',
    'http://app.example.com/',
    'page',
    'https://app.example.com@evil.example.com/',
    '/\\evil',
  ]) {
    assert.equal((await deliver(stage.browser, await answer(), relayState)).code, 'LOGIN_TARGET_REFUSED', relayState)
  }
  for (const [relayState, to] of [
    ['/page?x=1', '/page?x=1'],
    [`https://${HOST}/other#top`, '/other'],
  ] as const) {
    const browser = new TestBrowser(stage.phases)
    const page = await deliver(browser, await answer(), relayState)
    assert.deepEqual([page.status, page.location], [302, to])
    assert.equal((await browser.visit()).upstream?.get('postern-auth-user-id'), 'ada')
  }
  const xml = await answer()
  assert.equal((await deliver(stage.browser, xml, '/')).status, 302)
  assert.equal((await deliver(stage.browser, xml, '/')).code, 'LOGIN_ANSWER_REPEATED')
  const answering = await idp.answer(unsolicited, { inResponseTo: '_somebody-asked' })
  assert.equal((await deliver(stage.browser, answering, '/')).code, 'LOGIN_ANSWER_ELSEWHERE')
  const long = await idp.answer(unsolicited, { inResponseTo: undefined, confirmedUntil: 3 * 86_400 })
  assert.equal((await deliver(stage.browser, long, '/')).code, 'LOGIN_ANSWER_OUTDATED')
  // An answer to a request cannot be used as an unsolicited one either.
  stage.browser.cookies.clear()
  const asked = await ask(stage)
  assert.equal((await deliver(stage.browser, await idp.answer(asked), '/')).code, 'LOGIN_ANSWER_ELSEWHERE')
})

test('the sealed answer for one host or page is refused at another', async () => {
  const stage = setUp({ allow_idp_initiated: true })
  const unsolicited = { requestId: '', relayState: '', acs: ACS, entityId: `https://${HOST}${ROUTE}/metadata` }
  const xml = await idp.answer(unsolicited, { inResponseTo: undefined })
  const sent = await post(stage.browser, { SAMLResponse: Buffer.from(xml).toString('base64'), RelayState: '/page' })
  assert.ok(sent.location.startsWith(`${ROUTE}/in?to=%2Fpage&answer=`))
  for (const [path, host] of [
    [sent.location.replace('%2Fpage', '%2Fother'), HOST],
    [sent.location, 'b.example.com'],
  ] as const) {
    assert.equal((await stage.browser.visit({ path, host })).code, 'LOGIN_STATE_INVALID')
  }
})

test('while used answers cannot be stored, nobody is let in', async () => {
  const away = () => Promise.reject(new Refusal('STORE_UNAVAILABLE', undefined, { headers: { 'retry-after': '7' } }))
  const stage = setUp({ allow_idp_initiated: true })
  const down = mock.method(stage.tools.sessions, 'useAnswer', away)
  const isDown = ({ code, headers }: Page) =>
    assert.deepEqual([code, headers.get('retry-after')], ['LOGIN_STORE_DOWN', '7'])
  const asked = await ask(stage)
  const xml = await idp.answer(asked)
  isDown(await deliver(stage.browser, xml, asked.relayState))
  const unsolicited = { requestId: '', relayState: '', acs: ACS, entityId: `https://${HOST}${ROUTE}/metadata` }
  isDown(await deliver(stage.browser, await idp.answer(unsolicited, { inResponseTo: undefined }), '/page'))

  // The same form once the store is back, which fails again at the redirect.
  down.mock.restore()
  const sent = await post(stage.browser, { SAMLResponse: base64(xml), RelayState: asked.relayState })
  assert.equal(sent.status, 303)
  const again = mock.method(stage.tools.sessions, 'useAnswer', away)
  isDown(await stage.browser.visit({ path: sent.location }))
  assert.equal(stage.browser.cookies.size, 0, 'the attempt is over')
  again.mock.restore()
  assert.equal((await stage.browser.visit()).status, 302)
  assert.equal((await logIn(stage)).status, 302)
  assert.equal((await stage.browser.visit()).status, 200)
})

test('an answer is remembered by a digest, for longer than it is valid', async () => {
  const sessions = new MemorySessions()
  const used = mock.method(sessions, 'useAnswer')
  const stage = setUp({ allow_idp_initiated: true }, { sessions })
  const [minute, day] = [60_000, 24 * 3_600_000]
  assert.equal((await logIn(stage)).status, 302)
  const forRequest = used.mock.calls.map(({ arguments: [answer] }) => answer)
  assert.equal(new Set(forRequest.map(({ key }) => key)).size, 2)
  for (const { key, untilMs } of forRequest) {
    assert.match(key, /^[\w-]{43}$/)
    assert.ok(untilMs - Date.now() > 17 * minute)
  }
  used.mock.resetCalls()
  const unsolicited = { requestId: '', relayState: '', acs: ACS, entityId: `https://${HOST}${ROUTE}/metadata` }
  const xml = await idp.answer(unsolicited, { inResponseTo: undefined, confirmedUntil: day / 1000 - 1 })
  assert.equal((await deliver(stage.browser, xml, '/')).status, 302)
  assert.ok((used.mock.calls[0]?.arguments[0].untilMs ?? 0) - Date.now() > day + minute)
})

test('a login ends with the session at the identity provider, or after its own time', async () => {
  const minute = 60_000
  for (const [sessionUntil, maximum, expected] of [
    [600, 0, 11 * minute],
    [600, 60, minute],
    [undefined, 60, minute],
    [undefined, 0, undefined],
  ] as const) {
    const ends: (number | undefined)[] = []
    const sessions = new MemorySessions()
    const begin: typeof sessions.begin = (place, login, origin, before) => {
      ends.push(origin?.expiresAt === undefined ? undefined : origin.expiresAt - login.createdAt)
      return MemorySessions.prototype.begin.call(sessions, place, login, origin, before)
    }
    sessions.begin = begin
    assert.equal((await logIn(setUp({ maximum_duration: maximum }, { sessions }), { sessionUntil })).status, 302)
    const [end] = ends
    // The identity provider noted its time a moment before.
    if (expected === undefined) assert.equal(end, undefined)
    else assert.ok(end !== undefined && end <= expected && end > expected - minute / 2, String(end))
  }
  assert.equal((await logIn(setUp(), { sessionUntil: -61 })).code, 'LOGIN_ANSWER_OUTDATED')
})

test('a denial and a failure of the identity provider have different errors', async () => {
  const stage = setUp()
  const status = (name: string): string => `urn:oasis:names:tc:SAML:2.0:status:${name}`
  assert.equal((await logIn(stage, { status: status('AuthnFailed') })).code, 'LOGIN_DENIED')
  assert.equal((await logIn(stage, { status: status('RequestDenied') })).code, 'LOGIN_DENIED')
  assert.equal((await logIn(stage, { status: status('Responder') })).code, 'LOGIN_PROVIDER_ERROR')
  assert.equal((await logIn(stage, { status: '' })).code, 'LOGIN_PROVIDER_ERROR')
})

test('when the threads are too busy to read an answer, nobody is let in', async () => {
  const refusing = (error: Error): ModuleTools['samlDocuments'] => {
    const documents = testTools().samlDocuments
    return { ...documents, answer: () => Promise.reject(error) }
  }
  const busy = setUp({}, { samlDocuments: refusing(new WorkRefused()) })
  assert.equal((await logIn(busy)).code, 'SERVER_BUSY')
  const heavy = setUp({}, { samlDocuments: refusing(new WorkTooHeavy('time')) })
  assert.equal((await logIn(heavy)).code, 'LOGIN_ANSWER_UNREADABLE')
})

test('documents count for the owner of the edge, and within its share for the source', async () => {
  const sharers: unknown[] = []
  const documents = testTools().samlDocuments
  const samlDocuments: ModuleTools['samlDocuments'] = {
    ...documents,
    answer: (sharer, ...rest) => {
      sharers.push(sharer)
      return documents.answer(sharer, ...rest)
    },
  }
  const stage = setUp({}, { samlDocuments })
  await logIn(stage)
  assert.deepEqual(sharers, [{ owner: 'usr_test', source: '192.0.2.7' }])
})

test('each path accepts only its own methods', async () => {
  const { browser } = setUp()
  for (const [path, method, allowed] of [
    [`${ROUTE}/acs`, 'PUT', 'GET, POST'],
    [`${ROUTE}/metadata`, 'POST', 'GET, HEAD'],
    [`${ROUTE}/slo`, 'DELETE', 'GET, POST'],
    [`${ROUTE}/in`, 'POST', 'GET'],
  ] as const) {
    const page = await browser.visit({ path, method })
    assert.deepEqual([page.status, page.headers.get('allow')], [405, allowed], path)
  }
  assert.equal((await browser.visit({ path: `${ROUTE}/acs` })).code, 'LOGIN_STATE_MISSING')
  assert.equal((await browser.visit({ path: `${ROUTE}/in` })).code, 'LOGIN_STATE_MISSING')
})

test('nothing of an answer is logged', async () => {
  const stage = setUp()
  await logIn(stage, { audience: 'urn:somebody-else' })
  await logIn(stage)
  const log = stage.logged.join('')
  assert.match(log, /a login failed.*the audience is another one|the audience is another one.*a login failed/)
  assert.doesNotMatch(log, /ada|Lovelace|somebody-else|PHNhbWw/)
})
