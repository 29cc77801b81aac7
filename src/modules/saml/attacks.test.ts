/** Forged and wrong answers of an identity provider: none lets anybody in, and the page says why. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Asked, type Facts, goodFacts, RSA_SHA1, responseXml, TestIdp } from './testing/test-idp.ts'
import { ask, base64, deliver, idp, logIn, post, setUp } from './testing/test-stage.ts'

const stranger = await TestIdp.make()

/** Parts of a signed answer, to rearrange. */
interface Parts {
  readonly asked: Asked
  /** The assertion with its signature, and without. */
  readonly assertion: string
  readonly bare: string
  readonly signature: string
  /** The same for another user, unsigned. */
  readonly evil: string
  /** The response around the assertion. */
  readonly before: string
  readonly after: string
}

/** `signs`: what the provider signed. */
async function partsOf(asked: Asked, signs: 'assertion' | 'response' = 'assertion'): Promise<Parts> {
  const xml = await idp.answer(asked, {}, { signs })
  const assertion = /<saml:Assertion.*<\/saml:Assertion>/s.exec(xml)?.[0] ?? ''
  const signature = /<ds:Signature.*<\/ds:Signature>/s.exec(xml)?.[0] ?? ''
  assert.ok(assertion && signature)
  const bare = assertion.replace(signature, '')
  const evil = bare.replace('>ada<', '>root<').replace(/(<saml:Assertion[^>]* ID=")[^"]*/, '$1_evil')
  const [before = '', after = ''] = xml.split(assertion)
  return { asked, assertion, bare, signature, evil, before, after }
}

const inside = (outer: string, inner: string): string => outer.replace(/(<\/[\w:]+>)$/, `${inner}$1`)
const afterIssuer = (outer: string, inner: string): string =>
  outer.replace(/(<saml:Issuer>[^<]*<\/saml:Issuer>)/, `$1${inner}`)

/** The eight shapes of Somorovsky and others, "On Breaking SAML: Be Whoever You Want to Be" (2012). */
const wrappings: Record<string, (parts: Parts, response: Parts) => string> = {
  'XSW1: a signed response, moved into the signature of another response': (
    _,
    { before, bare, evil, after, signature },
  ) => {
    const original = (before + bare + after).replace(signature, '')
    const object = inside(signature, original)
    return afterIssuer((before + evil + after).replace(signature, '').replace(/ ID="[^"]*"/, ' ID="_evilr"'), object)
  },
  'XSW2: a signed response, beside its signature in another response': (
    _,
    { before, bare, evil, after, signature },
  ) => {
    const original = (before + bare + after).replace(signature, '')
    return afterIssuer(
      (before + evil + after).replace(signature, '').replace(/ ID="[^"]*"/, ' ID="_evilr"'),
      `${signature}${original}`,
    )
  },
  'XSW3: an assertion before the signed one': ({ before, evil, assertion, after }) => before + evil + assertion + after,
  'XSW4: an assertion around the signed one': ({ before, evil, assertion, after }) =>
    before + inside(evil, assertion) + after,
  'XSW5: a changed assertion with the signature, and the signed one behind it': ({
    before,
    evil,
    bare,
    signature,
    after,
  }) => before + afterIssuer(evil, signature) + bare + after,
  'XSW6: a changed assertion with the signature, and the signed one inside that': ({
    before,
    evil,
    bare,
    signature,
    after,
  }) => before + afterIssuer(evil, inside(signature, bare)) + after,
  'XSW7: an extension that holds an assertion of the same id': ({ before, evil, bare, assertion, after }) => {
    const id = / ID="([^"]*)"/.exec(bare)?.[1] ?? ''
    return `${before}<samlp:Extensions>${evil.replace('_evil', id)}</samlp:Extensions>${assertion}${after}`
  },
  'XSW8: an object of the signature that holds the signed assertion': ({ before, evil, bare, signature, after }) =>
    before + afterIssuer(evil, inside(signature, `<ds:Object>${bare}</ds:Object>`)) + after,
}

describe('signature wrapping', () => {
  for (const [name, wrap] of Object.entries(wrappings)) {
    test(name, async () => {
      const stage = setUp()
      const asked = await ask(stage)
      const xml = wrap(await partsOf(asked), await partsOf(asked, 'response'))
      assert.ok(xml.includes('>root<') && xml.includes('>ada<') && xml.includes('<ds:Signature'))
      const page = await deliver(stage.browser, xml, asked.relayState)
      assert.match(String(page.code), /^LOGIN_ANSWER_(UNSIGNED|AMBIGUOUS)$/)
      assert.equal((await stage.browser.visit()).status, 302)
    })
  }
})

/** Answers whose facts are wrong, and signed all the same. */
const wrongFacts: Record<string, readonly [code: string, changed: (asked: Asked) => Partial<Facts>]> = {
  'another issuer': ['LOGIN_ANSWER_ELSEWHERE', () => ({ issuer: 'https://other.example.com/metadata' })],
  'another audience': ['LOGIN_ANSWER_ELSEWHERE', () => ({ audience: 'https://other.example.com/metadata' })],
  'an audience that begins like ours': ['LOGIN_ANSWER_ELSEWHERE', ({ entityId }) => ({ audience: `${entityId}/more` })],
  'another recipient': ['LOGIN_ANSWER_ELSEWHERE', () => ({ recipient: 'https://other.example.com/acs' })],
  'another destination': ['LOGIN_ANSWER_ELSEWHERE', () => ({ destination: 'https://other.example.com/acs' })],
  'an answer to another request': ['LOGIN_ANSWER_ELSEWHERE', () => ({ inResponseTo: '_other' })],
  'an answer to no request': ['LOGIN_ANSWER_ELSEWHERE', () => ({ inResponseTo: undefined })],
  'conditions that are over': ['LOGIN_ANSWER_OUTDATED', () => ({ notOnOrAfter: -61 })],
  'conditions that do not hold yet': ['LOGIN_ANSWER_OUTDATED', () => ({ notBefore: 70 })],
  'a confirmation that is over': ['LOGIN_ANSWER_OUTDATED', () => ({ confirmedUntil: -61 })],
  'no authentication statement': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ statements: 0 })],
  'two authentication statements': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ statements: 2 })],
  'an empty name': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ nameId: '' })],
  'two names': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ nameId: 'ada</saml:NameID><saml:NameID>root' })],
  'two subjects': [
    'LOGIN_ANSWER_AMBIGUOUS',
    () => ({ more: '<saml:Subject><saml:NameID>root</saml:NameID></saml:Subject>' }),
  ],
  'two sets of conditions': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ more: '<saml:Conditions/>' })],
  'a name with a control character': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ nameId: 'ada&#10;root' })],
  'a name that is too long': ['LOGIN_ANSWER_AMBIGUOUS', () => ({ nameId: 'x'.repeat(257) })],
}

describe('a signed answer with wrong content is refused', () => {
  for (const [name, [code, changed]] of Object.entries(wrongFacts)) {
    test(name, async () => {
      const stage = setUp()
      const asked = await ask(stage)
      const page = await deliver(stage.browser, await idp.answer(asked, changed(asked)), asked.relayState)
      assert.equal(page.code, code)
      assert.equal((await stage.browser.visit()).status, 302)
    })
  }

  test('a minute of difference between the clocks is tolerated', async () => {
    assert.equal((await logIn(setUp(), { notBefore: 50, notOnOrAfter: 300 })).status, 302)
    assert.equal((await logIn(setUp(), { notOnOrAfter: -50, confirmedUntil: -50 })).status, 302)
  })

  test('an assertion that was used before', async () => {
    const stage = setUp()
    const asked = await ask(stage)
    const xml = await idp.answer(asked)
    const cookies = new Map(stage.browser.cookies)
    assert.equal((await deliver(stage.browser, xml, asked.relayState)).status, 302)
    for (const [name, value] of cookies) stage.browser.cookies.set(name, value)
    assert.equal((await deliver(stage.browser, xml, asked.relayState)).code, 'LOGIN_ANSWER_REPEATED')
  })
})

/** Documents that are changed after they were signed, or not signed by the provider. */
const forged: Record<string, readonly [code: string, make: (asked: Asked) => Promise<string> | string]> = {
  'no signature': ['LOGIN_ANSWER_UNSIGNED', (asked) => responseXml(goodFacts(asked))],
  'a signature that was cut out': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) => (await idp.answer(asked)).replace(/<ds:Signature.*<\/ds:Signature>/s, ''),
  ],
  'a signature by another key': ['LOGIN_ANSWER_UNSIGNED', (asked) => idp.answer(asked, {}, { by: stranger.key })],
  'a response signed by another key': [
    'LOGIN_ANSWER_UNSIGNED',
    (asked) => idp.answer(asked, {}, { by: stranger.key, signs: 'response' }),
  ],
  'SHA-1': ['LOGIN_ANSWER_UNSIGNED', (asked) => idp.answer(asked, {}, { algorithm: RSA_SHA1 })],
  'a changed name': ['LOGIN_ANSWER_UNSIGNED', async (asked) => (await idp.answer(asked)).replace('>ada<', '>root<')],
  'a changed group': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) => (await idp.answer(asked, {}, { signs: 'response' })).replace('engineers', 'directors'),
  ],
  'a changed digest': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) =>
      (await idp.answer(asked)).replace(
        /(<ds:DigestValue>)(.)/,
        (_, tag: string, first: string) => `${tag}${first === 'A' ? 'B' : 'A'}`,
      ),
  ],
  'a key of its own in the signature': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) =>
      (await idp.answer(asked, {}, { by: stranger.key })).replace(
        '</ds:Signature>',
        '<ds:KeyInfo><ds:KeyName>k</ds:KeyName></ds:KeyInfo></ds:Signature>',
      ),
  ],
  'a comment in the name': [
    'LOGIN_ANSWER_UNREADABLE',
    async (asked) => (await idp.answer(asked, { nameId: 'root.evil' })).replace('root.evil', 'root<!-- -->.evil'),
  ],
  'a CDATA section': [
    'LOGIN_ANSWER_UNREADABLE',
    async (asked) => (await idp.answer(asked)).replace('>ada<', '><![CDATA[ada]]><'),
  ],
  'a DTD': ['LOGIN_ANSWER_UNREADABLE', async (asked) => `<!DOCTYPE x>${await idp.answer(asked)}`],
  'entities that grow': [
    'LOGIN_ANSWER_UNREADABLE',
    async (asked) =>
      `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>${(await idp.answer(asked)).replace('>ada<', '>&b;<')}`,
  ],
  'an entity that reads a file': [
    'LOGIN_ANSWER_UNREADABLE',
    async (asked) =>
      `<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>${(await idp.answer(asked)).replace('>ada<', '>&f;<')}`,
  ],
  'an entity that nobody declares': [
    'LOGIN_ANSWER_UNREADABLE',
    async (asked) => (await idp.answer(asked)).replace('>ada<', '>&f;<'),
  ],
  'an instruction': ['LOGIN_ANSWER_UNREADABLE', async (asked) => `${await idp.answer(asked)}<?php x?>`],
  'elements without end': ['LOGIN_ANSWER_UNREADABLE', () => '<a>'.repeat(20_000)],
  'another document': ['LOGIN_ANSWER_UNREADABLE', () => idp.metadata],
  'an encrypted assertion': [
    'LOGIN_ANSWER_ENCRYPTED',
    async (asked) =>
      (await idp.answer(asked)).replace(/<saml:Assertion.*<\/saml:Assertion>/s, '<saml:EncryptedAssertion/>'),
  ],
  'no assertion': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) => (await idp.answer(asked)).replace(/<saml:Assertion.*<\/saml:Assertion>/s, ''),
  ],
  'the root alone signed, and that for another id': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) => (await idp.answer(asked, {}, { signs: 'response' })).replace(/ID="_/, 'ID="_x'),
  ],
  'a second attribute of the kind of an id': [
    'LOGIN_ANSWER_UNSIGNED',
    async (asked) => {
      const xml = await idp.answer(asked)
      const id = /<saml:Assertion ID="([^"]*)"/.exec(xml)?.[1] ?? ''
      return xml.replace('<samlp:Status>', `<samlp:Status Id="${id}">`)
    },
  ],
}

describe('a document that the provider did not sign in this form is refused', () => {
  for (const [name, [code, make]] of Object.entries(forged)) {
    test(name, async () => {
      const stage = setUp()
      const asked = await ask(stage)
      const page = await deliver(stage.browser, await make(asked), asked.relayState)
      assert.equal(page.code, code)
      assert.equal((await stage.browser.visit()).status, 302)
    })
  }
})

test('anything but base64 of UTF-8 is refused', async () => {
  const stage = setUp()
  const asked = await ask(stage)
  const good = base64(await idp.answer(asked))
  for (const SAMLResponse of [
    '',
    '!',
    good.slice(0, -3),
    `${good}=`,
    `${good.slice(0, 40)}*${good.slice(40)}`,
    base64('\xff').replace('w78=', '/w=='),
  ]) {
    const page = await post(stage.browser, { SAMLResponse, RelayState: asked.relayState })
    assert.equal(page.code, 'LOGIN_ANSWER_UNREADABLE', SAMLResponse.slice(-12))
  }
  // Line breaks, as some providers send, are fine.
  const lines = good.replace(/.{76}/g, '$&\r\n')
  assert.equal((await post(stage.browser, { SAMLResponse: lines, RelayState: asked.relayState })).status, 303)
})

test('the form is bounded, is a form, and has each field once', async () => {
  const stage = setUp()
  const { relayState } = await ask(stage)
  const path = '/postern/saml/edghtsrt_1/acs'
  const send = (body: string, type = 'application/x-www-form-urlencoded') =>
    stage.browser.visit({ path, method: 'POST', isCrossSite: true, headers: { 'content-type': type }, body })
  const state = `RelayState=${encodeURIComponent(relayState)}`
  assert.equal((await send(`SAMLResponse=${'A'.repeat(256 * 1024)}&${state}`)).code, 'BODY_TOO_LARGE_TO_CHECK')
  assert.equal((await send(`SAMLResponse=QQ==&SAMLResponse=QQ==&${state}`)).code, 'LOGIN_ANSWER_UNREADABLE')
  assert.equal((await send(`SAMLResponse=QQ==&${state}&${state}`)).code, 'LOGIN_ANSWER_UNREADABLE')
  assert.equal((await send(`SAMLResponse=QQ==&${state}`, 'text/plain')).code, 'LOGIN_ANSWER_UNREADABLE')
  assert.equal((await send('')).code, 'LOGIN_STATE_MISSING')
  assert.equal((await send('SAMLResponse=QQ==&RelayState=x')).code, 'LOGIN_STATE_INVALID')
  assert.equal((await send(`SAMLResponse=QQ==&${state}x`)).code, 'LOGIN_STATE_INVALID')
})
