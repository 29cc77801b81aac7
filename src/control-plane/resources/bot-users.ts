/** Bots: principals that are not people, made by admins to own keys and credentials. */
import { Type } from '../../lib/shape/type.ts'
import { storedKind } from './resource.ts'

export const botUsers = storedKind({
  kind: 'bot_user',
  about: 'Principals for machines. A bot is a member; deleting it deletes its keys and credentials.',
  prefix: 'bot_',
  // Newer clients of the hosted service use this name.
  otherName: {
    name: 'service_user',
    noun: 'service user',
    about: 'The newer name of bot users; both names show the same bots.',
    path: '/service_users',
    listKey: 'service_users',
  },
  access: 'admin',
  form: {
    name: Type.String({ description: 'Name of the bot, unique in the account.', minLength: 1, maxBytes: 255 }),
    active: Type.Boolean({
      description: 'Keys and credentials of an inactive bot are refused, and its sessions end.',
      default: true,
    }),
  },
  claims: ({ name }) => [
    {
      scope: 'bot_name',
      key: name,
      taken: { code: 'NAME_IN_USE', msg: 'another bot has this `name`; choose another', field: 'name' },
    },
  ],
})
