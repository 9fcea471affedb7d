-- A table of people, written by three jobs at once: a stream of changes, privacy deletes, a nightly compaction.
create table people (id int, name string, color string) using iceberg
  tblproperties ('write.delete.mode'='merge-on-read', 'write.merge.mode'='merge-on-read',
                 'write.delete.isolation-level'='snapshot', 'write.merge.isolation-level'='snapshot');

-- job: stream
merge into people t using changes s on t.id = s.id
  when matched then update set color = s.color
  when not matched then insert *;
-- job: privacy
delete from people where id = 1;
-- job: nightly
call system.rewrite_data_files('people');
