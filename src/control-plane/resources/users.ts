/** Users: the people of the account, admins or members. */
import { Type } from '../../lib/shape/type.ts'
import { storedKind } from './resource.ts'

export const users = storedKind({
  kind: 'user',
  about:
    'The people of the account. Deleting one deletes its keys and credentials; whatever else it created belongs to the account.',
  prefix: 'usr_',
  access: 'admin',
  form: {
    name: Type.String({ description: 'Name of the user.', minLength: 1, maxBytes: 255 }),
    role: Type.Enum(['admin', 'member'], {
      description: 'What the user may do. One active admin always remains.',
      default: 'member',
    }),
    active: Type.Boolean({
      description: 'Keys and credentials of an inactive user are refused, and its sessions end.',
      default: true,
    }),
  },
  // Users that earlier versions stored lack the field.
  read: ({ active }) => ({ active: active !== false }),
})
