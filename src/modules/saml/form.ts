/** The `saml` module: visitors of a route log in with an identity provider that speaks SAML 2.0. */
import type { Static } from 'typebox'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { type LoginConfig, loginFields } from '../login/login-form.ts'
import { defineModule, moduleForm, type ShownAt } from '../module.ts'
import { addressesAt, type SamlAddresses } from './addresses.ts'
import { checkMetadata, isAddress } from './metadata.ts'

/** Real metadata has about 10 KiB. */
const MAX_METADATA_BYTES = 256 * 1024
const MAX_GROUPS = 1000

const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent'

const nameIdFormats = [
  PERSISTENT,
  'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
]

const form = moduleForm({
  ...loginFields,
  idp_metadata: Type.String({
    default: '',
    maxBytes: MAX_METADATA_BYTES,
    description:
      'Metadata of the identity provider: its SAML 2.0 `EntityDescriptor` with an `IDPSSODescriptor`, as XML without DTD.',
  }),
  idp_metadata_url: Type.String({
    default: '',
    maxBytes: 2048,
    description:
      'Where the metadata of the identity provider is read instead, and read again every quarter of an hour. `https`, or `http` to loopback.',
  }),
  force_authn: Type.Boolean({
    default: false,
    description:
      'Whether the identity provider must ask for credentials at every login, even of those who are logged in there.',
  }),
  allow_idp_initiated: Type.Boolean({
    default: false,
    description: 'Whether a login may begin at the identity provider, without a visit here before.',
  }),
  authorized_groups: Type.Array(Type.String({ minLength: 1, maxBytes: 1024 }), {
    default: [],
    maxItems: MAX_GROUPS,
    description: 'Groups; a visitor must be in one of them. Empty: everybody who logs in is let in.',
  }),
  // Clients send the empty string for what their caller left out.
  nameid_format: Type.Enum([...nameIdFormats, ''], {
    default: PERSISTENT,
    description: 'How the identity provider is asked to name visitors. Unset, null or empty: the persistent format.',
  }),
})

export interface SamlSettings extends LoginConfig, Omit<Static<typeof form>, 'enabled'> {}

export const saml = defineModule({
  name: 'saml',
  about: 'Lets in visitors who logged in with an identity provider that speaks SAML 2.0.',
  at: { route: form },
  needs: () => 'http',
  shows: {
    fields: {
      entity_id: givenByServer('The entity id of this route, which is the same as its `metadata_url`.'),
      assertion_consumer_service_url: givenByServer('Where the identity provider sends visitors back to.'),
      single_logout_url: givenByServer('Where the identity provider sends logout requests.'),
      request_signing_certificate_pem: Type.String({
        description:
          'The certificate, in PEM, of the key that signs requests to the identity provider. Given by the server.',
      }),
      metadata_url: givenByServer('Where the metadata of this route is read while the module is enabled.'),
    },
    read: (_config, at) => {
      const addresses = shownAddresses(at)
      return {
        entity_id: addresses?.entityId ?? '',
        assertion_consumer_service_url: addresses?.acs ?? '',
        single_logout_url: addresses?.logout ?? '',
        request_signing_certificate_pem: at.requestCertificate,
        metadata_url: addresses?.entityId ?? '',
      }
    },
  },
  accept: (config, { at }) => {
    const { idp_metadata, idp_metadata_url, authorized_groups, nameid_format } = config
    // D38: a disabled module may lack both.
    if (config.enabled && idp_metadata === '' && idp_metadata_url === '') {
      const needs = `an enabled \`saml\` module needs \`${at}idp_metadata\` or \`${at}idp_metadata_url\`; set one, or disable the module`
      throw new BadValue(`${at}idp_metadata`, 'required', needs)
    }
    if (idp_metadata !== '' && idp_metadata_url !== '') {
      const one = `only one of \`${at}idp_metadata\` and \`${at}idp_metadata_url\` may be set; empty the other`
      throw new BadValue(`${at}idp_metadata_url`, 'value', one)
    }
    if (idp_metadata !== '') checkMetadata(`${at}idp_metadata`, idp_metadata)
    if (idp_metadata_url !== '' && !isAddress(idp_metadata_url)) {
      const must = `\`${at}idp_metadata_url\` must be a URL such as \`https://idp.example.com/metadata\`; \`http://\` is allowed only for loopback hosts`
      throw new BadValue(`${at}idp_metadata_url`, 'value', must)
    }
    refuseRepeats(`${at}authorized_groups`, authorized_groups)
    return { ...config, nameid_format: nameid_format || PERSISTENT }
  },
  resolve: (config): SamlSettings => config,
  price: (config) => config.idp_metadata.length / CHARACTERS_PER_INSTRUCTION,
})

/** How many characters of XML cost as much as one instruction of a pattern. Over 32 KiB are read on another thread. */
const CHARACTERS_PER_INSTRUCTION = 32

function givenByServer(description: string) {
  return Type.String({
    description: `${description} Given by the server, for the first name of the edge; empty while that has none.`,
  })
}

/** The URLs for the first name of the edge that is not a wildcard; other names have URLs of the same form. */
function shownAddresses({ id, hostports }: ShownAt): SamlAddresses | undefined {
  const hostport = hostports.find((each) => !each.startsWith('*'))
  return hostport === undefined ? undefined : addressesAt(`https://${hostport.replace(/:443$/, '')}`, id)
}
