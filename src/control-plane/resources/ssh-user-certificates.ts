/** SSH user certificates: let the holder of a key log in, for a while, wherever their authority is trusted. */
import { isIP } from 'node:net'
import { readCidr } from '../../lib/net/cidr.ts'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { MAX_SSH_OPTIONS } from '../../lib/ssh-keys/ssh-certificate.ts'
import { storedKind } from './resource.ts'
import { authorityOf, certificateForm, certificateShows, signCertificate, signedFields } from './ssh-certificates.ts'

/** The scope of claims for digests of certificates, by which the SSH gateway finds them. */
export const SSH_USER_CERTIFICATES = 'ssh_user_certificate'

/** A day, in milliseconds. */
const USUAL_MS = 24 * 60 * 60 * 1000

const usualExtensions = { 'permit-pty': '', 'permit-user-rc': '' }

const options = { maxProperties: MAX_SSH_OPTIONS, maxKeyBytes: 255 }
const value = Type.String({ maxBytes: 4096 })

export const sshUserCertificates = storedKind({
  kind: 'ssh_user_certificate',
  about:
    'Certificates for users of SSH servers, signed by an SSH certificate authority. One whose principal is the id of an SSH credential also opens the SSH gateway of this server.',
  prefix: 'sucrt_',
  access: 'account',
  form: {
    ...certificateForm,
    critical_options: Type.Record(Type.String(), value, {
      description: 'What servers must enforce, by name: `force-command`, `source-address`.',
      ...options,
      default: {},
    }),
    extensions: Type.Optional(
      Type.Record(Type.String(), value, {
        description: 'What the holder may do, by name; `permit-pty` and `permit-user-rc` by default.',
        ...options,
      }),
    ),
  },
  fixed: [...signedFields, 'critical_options', 'extensions'],
  shows: {
    ...certificateShows,
    extensions: Type.Record(Type.String(), Type.String(), { description: 'What the holder may do, by name.' }),
  },
  async make(fields, making) {
    const { critical_options: criticalOptions, extensions = usualExtensions } = fields
    checkNames('critical_options', criticalOptions)
    checkNames('extensions', extensions)
    checkOptions(criticalOptions)
    const signing = { kind: 'user', criticalOptions, extensions, usualMs: USUAL_MS } as const
    return { ...fields, extensions, ...(await signCertificate(fields, signing, making)) }
  },
  mentions: (fields) => [authorityOf(fields)],
  claims: ({ digest }) => [
    {
      scope: SSH_USER_CERTIFICATES,
      key: digest,
      taken: { code: 'CONFLICT', msg: 'this exact certificate exists already' },
    },
  ],
})

type Options = Readonly<Record<string, string>>

function checkNames(field: string, given: Options): void {
  if ('' in given) throw new BadValue(field, 'value', `\`${field}\` has an entry without a name`)
}

/** OpenSSH refuses a certificate with values that it cannot read, so we refuse to make one. */
function checkOptions(given: Options): void {
  for (const name of ['force-command', 'source-address'] as const) {
    if (given[name] === '') throw wrong(name, 'must not be empty')
  }
  for (const each of given['source-address']?.split(',') ?? []) {
    if (isIP(each) && !each.includes('%')) continue
    try {
      readCidr(each)
    } catch (cause) {
      if (!(cause instanceof BadInput)) throw cause
      throw wrong(
        'source-address',
        `must be a list of addresses and networks, separated by commas without spaces: ${cause.message}`,
      )
    }
  }
}

function wrong(name: string, message: string): BadValue {
  const field = `critical_options["${name}"]`
  return new BadValue(field, 'value', `\`${field}\` ${message}`)
}
