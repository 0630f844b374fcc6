/// What is not about one verb: `latchkey help TOPIC`.
struct Topic: Sendable {
  let name: String
  /// In one line without a full stop.
  let summary: String
  let title: String
  let blocks: [Page.Block]
}

enum Topics {
  static let all = [
    Topic(
      name: "exit-codes", summary: "what the command can end with", title: "Exit codes",
      blocks: [
        .paragraph("A number that is not listed here is a failure."),
        .terms(Page.terms(ExitCode.allCases)),
        .paragraph(
          "Where a number covers several cases, the member code of the JSON answer (--json) says which one it is."),
      ]),
    Topic(
      name: "environment", summary: "the variables the command reads", title: "Environment",
      blocks: [.terms(Environment.documented)]),
    Topic(
      name: "files", summary: "what the command keeps, and where", title: "Files",
      blocks: [
        .paragraph(
          "Identity, keys and settings of this device are in the directory that --home or LATCHKEY_HOME names; without "
            + "either, settings are in $XDG_CONFIG_HOME/latchkey (~/.config/latchkey) and the rest in "
            + "$XDG_STATE_HOME/latchkey (~/.local/state/latchkey). Only their owner can read the files with keys in them; "
            + "who has them and the store can read what the household shares."),
        .paragraph(
          "An attached database holds tables, views and triggers whose names begin with lk_, which detach takes away again. "
            + "Copying a database file copies what it knows about its synchronisation too: attach copies one by one, and "
            + "never put an attached file itself into a folder that another program synchronises."),
        .paragraph(
          "Secrets are never taken from the command line. A file that holds one is read only if its owner alone can "
            + "read it (chmod 600)."),
      ]),
    Topic(
      name: "recipes", summary: "what an app's schema does not say", title: "Recipes",
      blocks: [
        .paragraph(
          "A recipe is a JSON file that says about an app's tables what their schema does not: \"latchkey attach DB --recipe "
            + "FILE\", \"latchkey rules set DB FILE\". It is read strictly: a key that is not known is an error that names it "
            + "and its line. The rules hold on every device of the zone; \"latchkey rules show DB\" prints them. For some apps "
            + "a recipe comes with this program (latchkey recipe list): its name stands for the file."),
        .code([
          "{ \"v\": 1,",
          "  \"name\": \"my budget\",",
          "  \"tables\": {",
          "    \"accounts\": { \"identity\": [\"uuid\"] },",
          "    \"transactions\": {",
          "      \"references\": {",
          "        \"account_id\": \"accounts\",",
          "        \"category_id\": { \"to\": \"categories\", \"on_delete\": \"null\", \"none\": [0, -1] } },",
          "      \"owned_by\": \"account_id\", \"local_columns\": [\"last_opened\"], \"renamed\": { \"memo\": \"note\" } },",
          "    \"attachments\": { \"references\": {",
          "      \"refid\": { \"by\": \"reftype\", \"to\": { \"Asset\": \"assets\", \"Stock\": \"stock\" }, \"none\": [-1, 0] } } },",
          "    \"currencies\": { \"lookup\": true, \"dedup\": [\"name\"], \"prefer\": \"is_system\" },",
          "    \"book\": \"singleton\",",
          "    \"settings\": \"local\" },",
          "  \"apply_when\": \"closed\" }",
        ]),
        .terms([
          Term("v", "the version of this format: 1"), Term("name", "for people"),
          Term(
            "tables",
            "by name: an object with the keys below; or \"local\", which keeps the table on this device; or \"singleton\": the "
              + "table has one row, the same everywhere"),
          Term(
            "apply_when",
            "\"closed\": others' rows are shown only while no app has the file open; for apps that hold it in memory and save all of it. "
              + "Start such an app with \"latchkey run\""),
          Term(
            "identity",
            "what makes rows of two devices the same: \"primaryKey\", a list of columns, or \"generated\" (only the row that "
              + "was copied is the same). Default: primaryKey, but generated for integer keys"),
          Term(
            "references",
            "column to table, where the schema does not declare it; or an object with \"to\", \"on_delete\" (\"cascade\", "
              + "\"null\" or \"keep\") and \"none\" (values that mean no row). Where another column says which table is meant, "
              + "\"by\" names it and \"to\" has a table for each of its values"),
          Term(
            "dedup",
            "the columns by which rows are the same: of several, one is shown, and what refers to the others shows that one. A list "
              + "of columns, or of objects with \"column\" and \"fold\": exact, trim (without white space at both ends) or nocase "
              + "(the default: nor case). Rows with NULL there are nobody's duplicates"),
          Term(
            "prefer",
            "the column that is true in rows that are shown rather than others; else the lowest record name decides"),
          Term("local_columns", "columns that stay on this device"),
          Term(
            "renamed",
            "former name to name of a column that the app renames by making its table anew: a hint for this file, to be given "
              + "before the new table is synchronised"),
          Term("lookup", "true for a table that rows of any zone refer to; used where part of a file is shared"),
          Term(
            "owned_by", "the column that refers to the row that a row belongs to; used where part of a file is shared"),
          Term("compress", "false for texts that outsiders can place in the table"),
        ]),
      ]),
    Topic(
      name: "records", summary: "what export prints, exactly", title: "Exported records",
      blocks: [
        .paragraph(
          "\"latchkey export DB\" prints one line for each record that exists, in byte order of the tables' names and then of "
            + "the records' names. Two devices with equal digests print the same bytes, and so does any other program that "
            + "follows this description."),
        .code([
          #"{"table":"accounts","record":"00112233445566778899aabbccddeeff","values":{"id":1,"name":"Cash"}}"#
        ]),
        .paragraph(
          "A line is one JSON object, without spaces between its parts, ended by a line feed. table is the table's name in the "
            + "household, record the record's name as 32 hexadecimal digits in lower case. values has a member for each "
            + "column that the record has a value for, in byte order of the columns' names in UTF-8. (Columns that are one "
            + "cell have one member, with a list as its value.) A value is"),
        .terms([
          Term("null", "NULL"), Term("17", "an integer: digits, without point or exponent"),
          Term(
            "0.5",
            "a real: the shortest decimal that reads back as the same number, always with a point or an exponent. Plain from "
              + "0.0001 up to below 10^16 in size (5.0, 0.25, -0.0), else with an exponent of at least two digits and its "
              + "sign (1e+16, 1.5e-05)"),
          Term(#"{"real":"inf"}"#, "a real that is not finite: inf or -inf"),
          Term(#""text""#, "a text that is UTF-8"),
          Term(#"{"text":"…"}"#, "a text that is not: its bytes in base64 with padding (RFC 4648, section 4)"),
          Term(#"{"blob":"…"}"#, "a blob, in base64 as well"),
          Term(#"{"ref":"…"}"#, "a reference: the name of the record that it goes to"),
          Term(#"{"together":[…]}"#, "the values of columns that are one cell"),
          Term(#"{"unknown":"…"}"#, "a kind of value from a newer version: its CBOR in base64"),
        ]),
        .paragraph(
          #"In texts and names, the quotation mark, the backslash, line feed, carriage return and tab are written \" \\ \n \r \t; "#
            + "what a terminal would act on (U+0000 to 001F, 007F to 009F, 061C, 200E, 200F, 2028 to 202E, 2066 to 2069) as "
            + #"\uXXXX with digits in lower case; everything else as it is, in UTF-8. With --ascii everything outside ASCII is "#
            + "escaped, too, above U+FFFF as a surrogate pair."),
        .paragraph(
          "\"--format csv\" prints one table (RFC 4180, UTF-8): a heading, the first column lk_record, the others in byte order "
            + "of their names; an empty field is NULL, a quoted empty one the empty text; blobs, and texts that are not UTF-8, "
            + "in base64; references as the record's name. Types are lost."),
      ]),
    Topic(
      name: "stores", summary: "where a household's data can be kept", title: "Stores",
      blocks: [
        .paragraph(
          "A store is storage that only stores: it sees encrypted objects with names that say nothing, their sizes and "
            + "times. It is named by a URL:"),
        .terms([
          Term("folder:PATH", "a directory: on a disk, a network share, or kept in step by another program"),
          Term("PATH", "the same, if it is a path (it holds a slash, or the directory exists)"),
          Term(
            "s3://BUCKET/PREFIX",
            "a bucket of Amazon S3, or of a service that speaks its protocol; ?endpoint=URL names the service, &region=R "
              + "its region"),
          Term(
            "webdav+https://HOST/PATH",
            "a folder of a WebDAV server, such as Nextcloud's; webdav+http only for this machine, or with ?insecure=1"),
        ]),
        .paragraph("Options of a bucket's URL, after \"?\" and joined by \"&\":"),
        .terms([
          Term("endpoint=URL", "the service's address; without it, Amazon's in that region"),
          Term("region=R", "part of every signature (default: AWS_REGION, the profile's, us-east-1)"),
          Term("path-style=1", "the bucket's name stands in the path, not in the host's name"),
          Term("profile=NAME", "the section of the shared credentials file that has the keys"),
          Term("ca=FILE", "the certificate authorities to trust, in PEM, instead of the system's"),
          Term("sign-payload=0", "leaves bodies out of signatures; https only, or this machine"),
          Term("proxy=URL", "goes through this proxy; the environment's are not looked at"),
          Term("insecure=1", "allows plain http to another machine"),
        ]),
        .paragraph(
          "What a store asks for never stands in the URL, which invites carry. --credential-file FILE reads it from a file that only "
            + "you can read (chmod 600), with lines \"name = value\": user and password for WebDAV; access-key, secret-key and, for "
            + "temporary keys, session-token for S3. It is kept in the keyring for exactly that URL and given to no other; "
            + "\"latchkey store credential\" changes it. Without one it is taken from the environment:"),
        .paragraph(
          "S3 keys come from the profile that the URL names; else from "
            + "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else from the profile in AWS_PROFILE, or "
            + "\"default\", of ~/.aws/credentials or ~/.aws/config."),
        .paragraph(
          "A WebDAV URL takes ca=FILE, proxy=URL and insecure=1. Its user's name comes from LATCHKEY_WEBDAV_USER, the password "
            + "from the first line of the file named by LATCHKEY_WEBDAV_PASSWORD_FILE, which nobody else may be able to read. A server "
            + "learns the password that it is sent: set LATCHKEY_WEBDAV_HOST to the one that it is for."),
        .paragraph(
          "A directory that is missing, or was emptied, stops synchronisation with exit code 11. It is never taken for a "
            + "household that deleted everything."),
      ]),
  ]

  /// The shape of every JSON answer, for the documentation.
  static let answer: [Page.Block] = [
    .paragraph(
      "With --json, every verb writes exactly one object to standard output, also when it fails and when the command "
        + "line is wrong:"),
    .code([#"{"v":1,"ok":true,"code":"done","message":"…","next":["…"],"data":{…}}"#]),
    .terms([
      Term("v", "the version of this shape"),
      Term("ok", "whether what was asked for happened (exit codes 0 and 3)"),
      Term("code", "which case it is, for programs"),
      Term("message", "the same for people: what happened, and why"),
      Term("next", "commands that lead on"),
      Term("data", "the answer; its members are listed with each verb"),
    ]),
  ]
}
