/** The `saml` module: visitors of a route log in with an identity provider that speaks SAML 2.0. */
import { Type } from 'typebox'
import { BadValue } from '../../lib/check.ts'
import { enabled, refuseRepeats } from '../../model/fields.ts'
import { loginFields } from '../login-form.ts'
import { defineModule } from '../module.ts'
import { checkMetadata } from './metadata.ts'

/** Far above what identity providers write, which is some ten KiB. */
const MAX_METADATA_BYTES = 256 * 1024
const MAX_GROUPS = 1000

const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent'

const nameIdFormats = [
  PERSISTENT,
  'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
]

const form = Type.Object(
  {
    enabled,
    ...loginFields,
    idp_metadata: Type.String({
      default: '',
      maxBytes: MAX_METADATA_BYTES,
      description:
        'Metadata of the identity provider: its SAML 2.0 `EntityDescriptor` with an `IDPSSODescriptor`, as XML without DTD.',
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
      description: 'Groups of which a visitor must be in one. Empty: everybody who logs in is let in.',
    }),
    // Clients send the empty string for what their caller left out.
    nameid_format: Type.Enum([...nameIdFormats, ''], {
      default: PERSISTENT,
      description: 'How the identity provider is asked to name visitors. Unset, null or empty: the persistent format.',
    }),
  },
  { additionalProperties: false },
)

export const saml = defineModule({
  name: 'saml',
  about: 'Lets in visitors who logged in with an identity provider that speaks SAML 2.0.',
  at: { route: form },
  needs: () => 'http',
  shows: {
    fields: {
      entity_id: given('The name of this route towards the identity provider.'),
      assertion_consumer_service_url: given('Where the identity provider sends visitors back to.'),
      single_logout_url: given('Where the identity provider tells of logouts.'),
      request_signing_certificate_pem: given(
        'The certificate, in PEM, of the key that signs requests to the identity provider.',
      ),
      metadata_url: given('Where the metadata of this route is read.'),
    },
    // Nothing is served for the identity provider yet, and what it is told must be true when it tries.
    read: () => ({
      entity_id: '',
      assertion_consumer_service_url: '',
      single_logout_url: '',
      request_signing_certificate_pem: '',
      metadata_url: '',
    }),
  },
  accept: (config, { at }) => {
    const { idp_metadata, authorized_groups, nameid_format } = config
    // D38: a disabled module may be stored bare.
    if (config.enabled && idp_metadata === '') {
      const needs = `an enabled \`saml\` module needs \`${at}idp_metadata\`; set it, or disable the module`
      throw new BadValue(`${at}idp_metadata`, 'required', needs)
    }
    if (idp_metadata !== '') checkMetadata(`${at}idp_metadata`, idp_metadata)
    refuseRepeats(`${at}authorized_groups`, authorized_groups)
    return { ...config, nameid_format: nameid_format || PERSISTENT }
  },
  price: (config) => config.idp_metadata.length / CHARACTERS_PER_INSTRUCTION,
})

/** Of XML, which are read in the time of an instruction: metadata of over 32 KiB is read off the event loop. */
const CHARACTERS_PER_INSTRUCTION = 32

function given(description: string) {
  return Type.String({ description: `${description} Given by the server; empty while it serves none.` })
}
