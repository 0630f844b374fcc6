#include <sqlite3.h>

/* What Swift cannot reach in sqlite3.h: the variadic sqlite3_db_config, and the destructor SQLITE_TRANSIENT, which is
   a number cast to a function pointer. */

static inline int latchkey_sqlite3_enable_triggers(sqlite3 *db, int on) {
  return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, (int *)0);
}

static inline int latchkey_sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, bytes, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int latchkey_sqlite3_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}
