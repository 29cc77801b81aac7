/** Reads the user and the groups from the attributes of an assertion, which every provider names differently. */
import type { LoginUser } from '../../model/logins.ts'
import { boundText } from '../login/login-provider.ts'

type Attributes = readonly { readonly name: string; readonly values: readonly string[] }[]

/** SAML core §8.3.7: the longest persistent name, in characters. */
const MAX_ID_LENGTH = 256
/** RFC 5321 §4.5.3.1.3 */
const MAX_EMAIL_LENGTH = 254
const MAX_NAME_LENGTH = 255

/** In lower case: plain names that providers use, URIs of Microsoft, and object ids of LDAP. */
const emailNames = [
  'email',
  'mail',
  'emailaddress',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  'urn:oid:0.9.2342.19200300.100.1.3',
  'urn:oid:1.2.840.113549.1.9.1',
]
const nameNames = [
  'displayname',
  'name',
  'cn',
  'http://schemas.microsoft.com/identity/claims/displayname',
  'urn:oid:2.16.840.1.113730.3.1.241',
  'urn:oid:2.5.4.3',
]
const usernameNames = [
  'username',
  'uid',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn',
  'urn:oid:0.9.2342.19200300.100.1.1',
]
const groupNames = [
  'groups',
  'group',
  'memberof',
  'ismemberof',
  'http://schemas.xmlsoap.org/claims/group',
  'http://schemas.microsoft.com/ws/2008/06/identity/claims/groups',
  'urn:oid:1.3.6.1.4.1.5923.1.5.1.1',
]

/** Undefined when the name cannot serve as an id. */
export function readPerson(nameId: string, attributes: Attributes): LoginUser | undefined {
  if (boundText(nameId, MAX_ID_LENGTH) === '') return undefined
  const [email, name, username] = [emailNames, nameNames, usernameNames].map((names) => valuesOf(attributes, names)[0])
  return {
    id: nameId,
    name: boundText(name, MAX_NAME_LENGTH),
    email: boundText(email, MAX_EMAIL_LENGTH),
    username: boundText(username, MAX_NAME_LENGTH),
  }
}

export function readGroups(attributes: Attributes): ReadonlySet<string> {
  return new Set(valuesOf(attributes, groupNames))
}

/** The values of all attributes with these names, in the order of the names. */
function valuesOf(attributes: Attributes, names: readonly string[]): string[] {
  return names.flatMap((wanted) =>
    attributes.filter(({ name }) => name.toLowerCase() === wanted).flatMap(({ values }) => values),
  )
}
