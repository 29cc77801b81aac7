import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { formsOf } from '../forms.ts'
import type { ModuleConfig } from '../module.ts'
import { saml } from './index.ts'
import { TestIdp } from './testing/test-idp.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(saml.at.route && saml.accept)
  return saml.accept(check(saml.at.route, body), { place: 'route', at })
}

const { metadata: idp_metadata } = await TestIdp.make()
const persistent = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent'

const defaults = {
  enabled: true,
  options_passthrough: false,
  cookie_prefix: '',
  inactivity_timeout: 0,
  maximum_duration: 0,
  idp_metadata_url: '',
  force_authn: false,
  allow_idp_initiated: false,
  authorized_groups: [],
  nameid_format: persistent,
}

test('has defaults for omitted fields', () => {
  assert.deepEqual(put({ idp_metadata }), { ...defaults, idp_metadata })
})

const [form] = formsOf(saml, 'route')
const show = (hostports: readonly string[]) =>
  form?.show(put({ idp_metadata }), () => assert.fail('nothing is referred to'), {
    id: 'edghtsrt_1',
    hostports,
    requestCertificate: 'PEM',
  })

test('the API shows every field, with the URLs for the identity provider', () => {
  assert.deepEqual(show(['*.example.com:443', 'app.example.com:443', 'b.example.com:443']), {
    ...defaults,
    idp_metadata,
    entity_id: 'https://app.example.com/postern/saml/edghtsrt_1/metadata',
    assertion_consumer_service_url: 'https://app.example.com/postern/saml/edghtsrt_1/acs',
    single_logout_url: 'https://app.example.com/postern/saml/edghtsrt_1/slo',
    request_signing_certificate_pem: 'PEM',
    metadata_url: 'https://app.example.com/postern/saml/edghtsrt_1/metadata',
  })
  assert.equal(
    show(['a.example.com:8443'])?.metadata_url,
    'https://a.example.com:8443/postern/saml/edghtsrt_1/metadata',
  )
})

test('without a name of the edge there are no URLs', () => {
  for (const hostports of [[], ['*.example.com:443']]) {
    assert.equal(show(hostports)?.entity_id, '')
    assert.equal(show(hostports)?.request_signing_certificate_pem, 'PEM')
  }
})

test('metadata may come from a URL instead, but not from both', () => {
  const idp_metadata_url = 'https://idp.example.com/metadata?tenant=1'
  assert.equal(put({ idp_metadata_url }).idp_metadata_url, idp_metadata_url)
  assert.equal(put({ idp_metadata_url: 'http://127.0.0.1:8080/m' }).enabled, true)
  assert.throws(() => put({ idp_metadata, idp_metadata_url }, 'saml.'), {
    field: 'saml.idp_metadata_url',
    message: /only one of/,
  })
  for (const bad of [
    'idp.example.com',
    'http://idp.example.com/',
    'https://a:b@idp.example.com/',
    'file:///etc/passwd',
    'https://',
  ]) {
    assert.throws(() => put({ idp_metadata_url: bad }), { field: 'idp_metadata_url', kind: 'value' }, bad)
  }
})

test('fields that the server sets are refused in requests', () => {
  for (const field of ['entity_id', 'metadata_url']) {
    assert.throws(() => put({ idp_metadata, [field]: '' }), { field, kind: 'unknown_field' })
  }
})

test('an enabled module needs metadata; a disabled one may lack it', () => {
  assert.equal(put({ enabled: false }).idp_metadata, '')
  for (const given of [undefined, null, '']) {
    assert.throws(() => put({ idp_metadata: given }, 'saml.'), {
      field: 'saml.idp_metadata',
      kind: 'required',
      message: /`saml\.idp_metadata`/,
    })
  }
})

test('refuses metadata that is wrong or too long, on a disabled module too', () => {
  for (const enabled of [true, false]) {
    assert.throws(() => put({ enabled, idp_metadata: '<a/>' }), { field: 'idp_metadata', kind: 'value' })
    const long = idp_metadata + ' '.repeat(256 * 1024)
    assert.throws(() => put({ enabled, idp_metadata: long }), { field: 'idp_metadata', kind: 'too_long' })
  }
})

test('accepts four name formats; an empty one means persistent', () => {
  for (const nameid_format of [
    persistent,
    'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
    'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
    'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
  ]) {
    assert.equal(put({ idp_metadata, nameid_format }).nameid_format, nameid_format)
  }
  for (const nameid_format of ['', null]) {
    assert.equal(put({ idp_metadata, nameid_format }).nameid_format, persistent)
  }
  for (const nameid_format of ['persistent', `${persistent} `, 'urn:oasis:names:tc:SAML:2.0:nameid-format:encrypted']) {
    assert.throws(() => put({ idp_metadata, nameid_format }), { field: 'nameid_format', kind: 'value' })
  }
})

test('groups are named once each, and exactly', () => {
  const authorized_groups = ['Admins', 'admins', 'cn=web team,dc=example']
  assert.deepEqual(put({ idp_metadata, authorized_groups }).authorized_groups, authorized_groups)
  assert.throws(() => put({ idp_metadata, authorized_groups: ['a', 'a'] }, 'saml.'), {
    field: 'saml.authorized_groups[1]',
  })
  assert.throws(() => put({ idp_metadata, authorized_groups: [''] }), { field: 'authorized_groups[0]' })
  assert.throws(() => put({ idp_metadata, authorized_groups: Array(1001).fill('x') }), { field: 'authorized_groups' })
})
